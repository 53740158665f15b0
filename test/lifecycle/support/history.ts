import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { goProgram } from '../../support/go.ts';

const checkerFolder = join(import.meta.dir, 'linearizability');
const buildTimeoutMs = 5 * 60_000;

/** A client's request about one sandbox, and its answer. */
export type Operation = {
  client: number;
  sandbox: string;
  kind: 'create' | 'pause' | 'connect' | 'kill' | 'look';
  /**
   * `done`: it was changed. `already`: it ran before. `changing`: a change is in progress. '' is no reliable answer: it
   * may have taken effect, may do so later, or never.
   */
  told: 'done' | 'already' | 'running' | 'paused' | 'changing' | 'missing' | 'conflict' | '';
  /** Microseconds on one clock; `returned` is null if nothing was answered. */
  called: number;
  returned: number | null;
};

/** A sandbox whose operations fit no order, or for which no order was found in time. */
type Finding = { sandbox: string; verdict: 'Illegal' | 'Unknown'; operations: Operation[] };

/** Why histories can't be checked here; undefined if they can. */
export function withoutChecker(): string | undefined {
  if (goProgram() !== null) return undefined;
  return 'its checker (porcupine) is built with Go, which is not installed (https://go.dev/dl)';
}

/**
 * Searches for an order of each sandbox's operations in which each took effect at one moment between its call and its
 * return, with the checker porcupine (https://github.com/anishathalye/porcupine); answers the sandboxes that have none.
 */
export async function checkHistory(operations: readonly Operation[]): Promise<Finding[]> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-history-'));
  try {
    const checker = join(folder, 'checker');
    await run([goProgram() ?? 'go', 'build', '-o', checker, '.'], '', buildTimeoutMs);
    return JSON.parse(await run([checker], JSON.stringify(operations))) as Finding[];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function run(argv: string[], input: string, timeout?: number): Promise<string> {
  const child = Bun.spawn(argv, {
    cwd: checkerFolder,
    stdin: Buffer.from(input),
    stdout: 'pipe',
    stderr: 'pipe',
    ...(timeout === undefined ? {} : { timeout }),
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${argv.join(' ')}: ${errors.slice(-1000)}`);
  return output;
}
