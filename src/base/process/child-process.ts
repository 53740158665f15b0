import { ifThere } from '../if-there.ts';
import { inheritedEnvironment } from './inherited.ts';
/** Facts of how a program ended. Exactly one of `exitCode` and `signal` is set. */
export type ProgramEnd = {
  exitCode: number | null;
  signal: string | null;
  /** Killed because it ran longer than allowed. */
  timedOut: boolean;
  /** Killed because its caller gave up. */
  canceled: boolean;
};

/** Standard input of a program: text, nothing, or a pipe that the caller writes to. */
type ProgramInput = Uint8Array | 'ignore' | 'pipe';

/** Bounds and surroundings of a program that `startProgram` starts. */
type ProgramOptions<Input extends ProgramInput> = {
  input: Input;
  /** The whole environment; absent: this process's own. */
  env?: Record<string, string>;
  cwd?: string;
  /** Open files that the program gets as its descriptors, from 3 on. */
  descriptors?: (number | 'ignore')[];
  /** Kills it after so many milliseconds. */
  timeoutMs: number;
  /** Kills it when it is aborted. */
  signal?: AbortSignal | undefined;
  /** Runs in its own process group, all of which is killed with it, and after its end. */
  ownGroup?: boolean;
};

/** A running program. Both outputs must be read, or it stops as soon as a pipe is full. */
type Program<Input extends ProgramInput = ProgramInput> = {
  pid: number;
  stdin: Bun.Spawn.WritableToIO<Input>;
  stdout: ReadableStream<Uint8Array>;
  stderr: ReadableStream<Uint8Array>;
  /** Settles when the program has ended; never fails. */
  ended: Promise<ProgramEnd>;
  /** Kills it, with its group if it has one. */
  kill(): void;
};

/**
 * Starts a program, which is killed at its deadline. Errors: that of the system call, if the program can't be started.
 */
export function startProgram<Input extends ProgramInput>(
  argv: string[],
  { input, env, cwd, descriptors = [], timeoutMs, signal, ownGroup = false }: ProgramOptions<Input>,
): Program<Input> {
  const child = Bun.spawn(argv, {
    stdio: [input, 'pipe', 'pipe', ...descriptors],
    detached: ownGroup,
    env: env ?? inheritedEnvironment(),
    ...(cwd !== undefined && { cwd }),
  });
  const kill = () => {
    if (ownGroup) killGroup(child.pid);
    else child.kill('SIGKILL');
  };
  const late = AbortSignal.timeout(timeoutMs);
  const either = signal ? AbortSignal.any([signal, late]) : late;
  if (either.aborted) kill();
  either.addEventListener('abort', kill, { once: true });
  const ended = child.exited.then(() => {
    either.removeEventListener('abort', kill);
    if (ownGroup) killGroup(child.pid);
    return {
      exitCode: child.exitCode,
      signal: child.signalCode === null ? null : String(child.signalCode),
      timedOut: late.aborted && child.signalCode === 'SIGKILL',
      canceled: signal?.aborted === true,
    };
  });
  return { pid: child.pid, stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, ended, kill };
}

function killGroup(pid: number): void {
  ifThere(() => process.kill(-pid, 'SIGKILL'), undefined);
}
