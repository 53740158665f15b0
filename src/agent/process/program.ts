import { closeSync, constants, openSync } from 'node:fs';
import { AtollError, messageOf } from '../../base/error.ts';
import type { Native } from '../native.ts';
import type { User } from '../sandbox/users.ts';
import type { TerminalSize } from './config.ts';
import type { Ending } from './end-status.ts';
import { openInput, type Input } from './input.ts';
import { briefly, pipeReader, type OutputReader } from './pipe-output.ts';
import { inTerminal, sessionOfItsOwn, type Spawner } from './spawner.ts';

const sigkill = 9;

/** The outputs of a program: two pipes, or one terminal. */
export type OutputName = 'stdout' | 'stderr' | 'pty';

/** One output. */
export type Output = { name: OutputName; reader: OutputReader };

/** A program that runs, or ran. */
export type Program = {
  readonly pid: number;
  readonly ended: Promise<Ending>;
  readonly outputs: Output[];
  /** Undefined: its stdin is /dev/null. */
  readonly input: Input | undefined;
  /** No effect once the program has ended: its PID may be another's by then. */
  signal(number: number): void;
  /** False: it has no terminal. */
  resize(size: TerminalSize): boolean;
};

/** A program to start, fully resolved: no name is looked up any more. */
type Launch = {
  argv: string[];
  environment: Record<string, string>;
  user: User;
  cwd: string;
  /** A pipe for stdin, otherwise /dev/null. Ignored if there is a terminal. */
  stdin: boolean;
  terminal: TerminalSize | undefined;
};

/**
 * Starts a program as `launch.user`, in a process group of its own. Errors: those of `Spawner.start`, and `invalid` if
 * no terminal can be opened.
 */
export function startProgram(launch: Launch, spawner: Spawner, native: Native): Promise<Program> {
  return launch.terminal
    ? startInTerminal(launch, launch.terminal, spawner, native)
    : startWithPipes(launch, spawner, native);
}

// Pipes, not sockets: a script that writes to /dev/stdout can't open a socket.
async function startWithPipes(launch: Launch, spawner: Spawner, native: Native): Promise<Program> {
  const opened = new Set<number>();
  const pipe = () => {
    const [readEnd, writeEnd] = native.pipe();
    opened.add(readEnd).add(writeEnd);
    return { readEnd, writeEnd };
  };
  try {
    const [stdout, stderr] = [pipe(), pipe()];
    const stdin = launch.stdin ? pipe() : undefined;
    const child = await spawn(launch, 0, spawner, [
      stdout.writeEnd,
      stderr.writeEnd,
      ...(stdin ? [stdin.readEnd] : []),
    ]);
    return orKill(child, () => {
      const input = stdin && openInput('stdin', stdin.writeEnd);
      const brief = briefly(child.ended);
      const readerOf = ({ readEnd }: typeof stdout) => {
        const reader = pipeReader(readEnd, brief, native);
        opened.delete(readEnd);
        return reader;
      };
      const outputs = [
        { name: 'stdout' as const, reader: readerOf(stdout) },
        { name: 'stderr' as const, reader: readerOf(stderr) },
      ];
      return { ...child, outputs, input, resize: () => false };
    });
  } finally {
    // The child has its ends, the readers have theirs, and the input has a duplicate of ours.
    for (const fd of opened) closeSync(fd);
  }
}

async function startInTerminal(launch: Launch, size: TerminalSize, spawner: Spawner, native: Native): Promise<Program> {
  let master: number;
  let terminal: number;
  try {
    master = openSync('/dev/ptmx', constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
    terminal = openTerminal(master, native);
  } catch (error) {
    throw new AtollError('invalid', `no terminal can be opened: ${messageOf(error)}`, { cause: error });
  }
  let open = true;
  // Only once: the numbers may belong to others a moment later.
  const close = () => {
    if (!open) return;
    open = false;
    closeSync(terminal);
    closeSync(master);
  };
  try {
    native.setTerminalSize(master, size.cols, size.rows);
    const child = await spawn(launch, sessionOfItsOwn | inTerminal, spawner, [master]);
    void child.ended.then(close);
    return orKill(child, () => {
      // The stream has a duplicate of it.
      const outputs = [{ name: 'pty' as const, reader: Bun.file(master).stream().getReader() }];
      const input = openInput('pty', master);
      // Bun makes a terminal that it writes to a blocking one. It requests non-blocking reads, but gVisor's block all
      // the same.
      native.neverWait(master);
      return {
        ...child,
        outputs,
        input,
        resize: ({ cols, rows }) => open && native.setTerminalSize(master, cols, rows),
      };
    });
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * Stays open as long as the program runs: gVisor's kernel mistakes a terminal that the program has not opened yet for
 * one that has ended.
 */
function openTerminal(master: number, native: Native): number {
  try {
    return openSync(native.terminalOf(master) ?? '', constants.O_RDWR | constants.O_NOCTTY);
  } catch (error) {
    closeSync(master);
    throw error;
  }
}

/** Kills a child that nobody could reach, because `finish` threw. */
function orKill(child: Pick<Program, 'signal'>, finish: () => Program): Program {
  try {
    return finish();
  } catch (error) {
    child.signal(sigkill);
    throw error;
  }
}

async function spawn(
  { user, cwd, argv, environment }: Launch,
  flags: number,
  spawner: Spawner,
  descriptors: number[],
): Promise<Pick<Program, 'pid' | 'ended' | 'signal'>> {
  const { uid, gid, groups } = user;
  const { pid, ended } = await spawner.start({ argv, environment, uid, gid, groups, flags, cwd }, descriptors);
  return { pid, ended, signal: number => spawner.signal(pid, number) };
}
