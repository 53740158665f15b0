import { AtollError } from '../../../base/error.ts';

/** Lines of output that an error quotes. */
const quotedLines = 12;
/** A line longer than this is cut: a progress bar without line ends must not fill memory. */
const lineCharactersMax = 4096;

const sealingOff = ['unshare', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child'];

export type RunOptions = {
  cwd?: string;
  /** Added to a minimal environment: PATH, HOME, LANG and what apt and npm need to reach their mirrors. */
  env?: Record<string, string>;
  /** Called with every line that the command writes, to either stream. */
  onLine?: (line: string) => void;
  /**
   * In mount and process namespaces of its own: what it mounts and starts is gone when it ends, however it ends,
   * and a cleaning of its folder never walks into a mount of the host.
   */
  sealedOff?: boolean;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
};

/**
 * Runs a command to its end, without input, in a process group of its own, and answers its standard output.
 * Errors: `internal` with the last lines of output when it fails, `deadline_exceeded`, `canceled`, and
 * `unavailable` when the program is not installed. No process of its group is left in any of these cases.
 */
export async function runCommand(argv: [string, ...string[]], options: RunOptions): Promise<string> {
  if (!Bun.which(argv[0])) throw new AtollError('unavailable', `${argv[0]} is not installed; \`npm run up\` installs it.`);
  options.signal?.throwIfAborted();
  const child = Bun.spawn(options.sealedOff ? [...sealingOff, ...argv] : argv, {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    // A group of its own, so that stopping it stops what it started.
    detached: true,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  const deadline = AbortSignal.timeout(options.timeoutMs);
  const stop = options.signal ? AbortSignal.any([options.signal, deadline]) : deadline;
  const kill = () => killGroup(child.pid);
  stop.addEventListener('abort', kill, { once: true });
  try {
    const tail: string[] = [];
    const output: string[] = [];
    const take = (into: string[] | undefined) => (line: string) => {
      into?.push(line);
      tail.push(line);
      if (tail.length > quotedLines) tail.shift();
      options.onLine?.(line);
    };
    await Promise.all([readLines(child.stdout, take(output)), readLines(child.stderr, take(undefined)), child.exited]);
    if (options.signal?.aborted) throw new AtollError('canceled', `${argv[0]} was stopped.`);
    if (deadline.aborted) {
      throw new AtollError('deadline_exceeded', `${argv[0]} did not end within ${options.timeoutMs / 1000} s.\n${tail.join('\n')}`);
    }
    if (child.exitCode !== 0) {
      throw new AtollError('internal', `${argv[0]} failed (exit code ${child.exitCode ?? child.signalCode}):\n${tail.join('\n')}`);
    }
    return output.join('\n');
  } finally {
    stop.removeEventListener('abort', kill);
    kill();
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group is gone: what was wanted.
  }
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n|\r/);
    rest = (lines.pop() ?? '').slice(-lineCharactersMax);
    for (const line of lines) onLine(line);
  }
  if (rest !== '') onLine(rest);
}
