import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export type Finished = { exitCode: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

/**
 * Runs a program to its end and answers all its results. After `timeoutMs`, it is killed with everything it started.
 */
export async function runToEnd(
  argv: string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string; input?: string; timeoutMs?: number } = {},
): Promise<Finished> {
  const child = start(argv, options);
  const stdout = textOf(child, 'stdout');
  const stderr = textOf(child, 'stderr');
  // A program may end without having read its input.
  child.stdin?.on('error', () => {}).end(options.input ?? '');
  const timer = setTimeout(() => killGroup(child, 'SIGKILL'), options.timeoutMs ?? 120_000);
  await once(child, 'close').finally(() => clearTimeout(timer));
  return { exitCode: child.exitCode, signal: child.signalCode, stdout: stdout(), stderr: stderr() };
}

/** Starts a program in its own process group, with pipes. */
export function start(argv: string[], options: { env?: NodeJS.ProcessEnv; cwd?: string }): ChildProcess {
  const [program = '', ...args] = argv;
  return spawn(program, args, {
    env: options.env ?? process.env,
    cwd: options.cwd,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** Collects a stream; the returned function tells what has come so far. */
export function textOf(child: ChildProcess, stream: 'stdout' | 'stderr'): () => string {
  let text = '';
  child[stream]?.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  return () => text;
}

export function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // It has ended.
  }
}

/** Repeats `look` until it answers something, for at most `timeoutMs`. */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 25));
  }
}
