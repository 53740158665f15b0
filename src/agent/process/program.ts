import { closeSync, constants, openSync } from 'node:fs';
import { AtollError, messageOf } from '../../base/error.ts';
import type { Native } from '../native.ts';
import type { User } from '../sandbox/users.ts';
import type { TerminalSize } from './config.ts';
import { signalNumber, type Ending } from './end-status.ts';
import { openInput, type Input } from './input.ts';

/** The outputs of a program: two pipes, or one terminal. */
export type OutputName = 'stdout' | 'stderr' | 'pty';

/** Bytes of one output, read only as fast as they are asked for. */
export type Output = {
  name: OutputName;
  reader: { read(): Promise<{ value?: Uint8Array | undefined; done: boolean }> };
};

/** A program that runs, or ran. */
export type Program = {
  readonly pid: number;
  readonly ended: Promise<Ending>;
  readonly outputs: Output[];
  /** Undefined: its stdin is /dev/null. */
  readonly input: Input | undefined;
  /** Without effect once the program has ended: its PID may be another's by then. */
  signal(number: number): void;
  /** False: it has no terminal. */
  resize(size: TerminalSize): boolean;
};

/** A program to start, with everything resolved: no name is looked up any more. */
type Launch = {
  argv: string[];
  environment: Record<string, string>;
  user: User;
  cwd: string;
  /** A pipe for stdin, else /dev/null. Without meaning where there is a terminal. */
  stdin: boolean;
  terminal: TerminalSize | undefined;
};

const execSession = 1;
const execTerminal = 2;

/**
 * Starts a program as `launch.user`, in a process group of its own, through `init exec`. That does what Bun.spawn can't
 * (supplementary groups, priority, terminal) and then becomes the program, under the same PID.
 */
export function startProgram(launch: Launch, initPath: string, native: Native): Program {
  return launch.terminal
    ? startInTerminal(launch, launch.terminal, initPath, native)
    : startWithPipes(launch, initPath, native);
}

// Pipes, where Bun.spawn would make sockets: a script that writes to /dev/stdout can't open a socket.
function startWithPipes(launch: Launch, initPath: string, native: Native): Program {
  const opened: number[] = [];
  const pipe = () => {
    const ends = native.pipe();
    opened.push(...ends);
    return { readEnd: ends[0], writeEnd: ends[1] };
  };
  try {
    const [stdout, stderr] = [pipe(), pipe()];
    const stdin = launch.stdin ? pipe() : undefined;
    const child = spawn(launch, 0, initPath, [stdin?.readEnd ?? 'ignore', stdout.writeEnd, stderr.writeEnd]);
    return {
      ...child,
      outputs: [
        { name: 'stdout', reader: readerOf(stdout.readEnd) },
        { name: 'stderr', reader: readerOf(stderr.readEnd) },
      ],
      input: stdin && openInput('stdin', stdin.writeEnd),
      resize: () => false,
    };
  } finally {
    // The child has its ends, and reader and input have duplicates of ours.
    for (const fd of opened) closeSync(fd);
  }
}

function startInTerminal(launch: Launch, size: TerminalSize, initPath: string, native: Native): Program {
  let master: number;
  let terminal: number;
  try {
    master = openSync('/dev/ptmx', constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
    terminal = openTerminal(master, native);
  } catch (error) {
    throw new AtollError('invalid', `no terminal can be opened: ${messageOf(error)}`, { cause: error });
  }
  try {
    native.setTerminalSize(master, size.cols, size.rows);
    const child = spawn(launch, execSession | execTerminal, initPath, ['ignore', 'ignore', 'ignore', master]);
    let open = true;
    void child.ended.then(() => {
      open = false;
      closeSync(terminal);
      closeSync(master);
    });
    const outputs = [{ name: 'pty' as const, reader: readerOf(master) }];
    const input = openInput('pty', master);
    // Bun makes a terminal that it writes to a blocking one. It asks for non-blocking reads, but gVisor's block all the
    // same.
    native.neverWait(master);
    return { ...child, outputs, input, resize: ({ cols, rows }) => open && native.setTerminalSize(master, cols, rows) };
  } catch (error) {
    closeSync(terminal);
    closeSync(master);
    throw error;
  }
}

/**
 * Stays open as long as the program runs: gVisor's kernel takes a terminal that the program has not opened yet for one
 * that has ended.
 */
function openTerminal(master: number, native: Native): number {
  try {
    return openSync(native.terminalOf(master) ?? '', constants.O_RDWR | constants.O_NOCTTY);
  } catch (error) {
    closeSync(master);
    throw error;
  }
}

function spawn(
  launch: Launch,
  flags: number,
  initPath: string,
  stdio: (number | 'ignore')[],
): Pick<Program, 'pid' | 'ended' | 'signal'> {
  const { user, cwd, argv } = launch;
  const ended = Promise.withResolvers<Ending>();
  const [stdin = 'ignore', stdout = 'ignore', stderr = 'ignore', ...more] = stdio;
  const child = Bun.spawn(
    [initPath, 'exec', `${user.uid}`, `${user.gid}`, user.groups.join(','), `${flags}`, cwd, '--', ...argv],
    {
      cwd: '/',
      env: launch.environment,
      stdio: [stdin, stdout, stderr, ...more],
      onExit(_, exitCode, signal) {
        ended.resolve(signal === null ? { exitCode: exitCode ?? 0 } : { signal: signalNumber(signal) });
      },
    },
  );
  return { pid: child.pid, ended: ended.promise, signal: number => child.kill(number) };
}

// A duplicate of `fd` is read: the caller still has to close it.
function readerOf(fd: number): Output['reader'] {
  return Bun.file(fd).stream().getReader();
}
