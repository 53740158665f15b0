import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';

export type Outcome = { exitCode: number; output: string };

/** Characters of a program's output that are kept, from its end: enough for a report, whatever it prints. */
const outputCharsMax = 4_000_000;

/**
 * Runs a program to its end, at low priority, and answers its standard output and standard error together. After
 * `timeoutMs` it is killed with everything it started, and the exit code is 124, as in timeout(1).
 */
export async function run(
  argv: string[],
  options: { timeoutMs: number; input?: string; env?: Record<string, string>; cwd?: string; log?: string },
): Promise<Outcome> {
  const [program = '', ...rest] = argv;
  const child = spawn('nice', ['-n', '10', program, ...rest], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let output = '';
  let overdue = false;
  const log = options.log === undefined ? undefined : createWriteStream(options.log, { flags: 'a' });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      output = (output + part).slice(-outputCharsMax);
      log?.write(part);
    });
  }
  child.stdin.on('error', () => {}); // it ended without reading
  child.stdin.end(options.input ?? '');
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  const timer = setTimeout(() => {
    overdue = true;
    end();
  }, options.timeoutMs);
  // It is in its own group, and would outlive the laboratory.
  process.on('exit', end);
  await once(child, 'close').finally(() => {
    clearTimeout(timer);
    process.off('exit', end);
  });
  log?.end();
  return { exitCode: overdue ? 124 : (child.exitCode ?? 137), output };
}

/** Like `run`, but fails if the program does. */
export async function mustRun(argv: string[], options: Parameters<typeof run>[1]): Promise<string> {
  const { exitCode, output } = await run(argv, options);
  if (exitCode !== 0)
    throw new Error(`${argv[0]} ended with ${exitCode}: ${output.trim().split('\n').slice(-5).join('\n')}`);
  return output;
}
