import { startHelperProcess, type HelperProcess } from './helper-process.ts';
import { createProgramPlaces, kindByTime, type ProgramKind } from './program-places.ts';
import { operations, type AnswerOf, type ArgumentsOf, type OperationName, type SpawnResult } from './operations.ts';

type SpawnOptions = {
  timeoutMs: number;
  stdin?: string;
  /** Directories of control groups that the program is in from its first moment. */
  groups?: readonly string[] | undefined;
  kind?: ProgramKind;
  teamId?: string | undefined;
  onPlace?: (() => void) | undefined;
};

/** The process for work that needs raw system calls; native/helper.c describes its protocol. */
export type Helper = {
  /** Carries out one operation. Fails with `HelperError`; `invalid` if an argument holds a line end or a NUL. */
  call<Name extends OperationName>(name: Name, args: ArgumentsOf<Name>): Promise<AnswerOf<Name>>;
  /**
   * Runs a program in the helper's mount namespace once its kind has a place, and answers when it has ended.
   * `NAME=value` before it goes into its environment; `stdin` is one line. `timeoutMs` counts from its start.
   * `teamId`: the team whose sandbox it is for. `onPlace` is called before it starts.
   */
  spawn(argv: string[], options: SpawnOptions): Promise<SpawnResult>;
  /**
   * Like `spawn`, for a program that starts a sandbox and leaves other processes behind. `closed` resolves when these
   * have closed its output as well, or write to it.
   */
  start(
    tag: string,
    argv: string[],
    options: Pick<SpawnOptions, 'timeoutMs' | 'stdin' | 'groups'>,
  ): Promise<SpawnResult & { closed: Promise<void> }>;
  /** Resolves when the watched process has ended. */
  exited(tag: string): Promise<void>;
  pid: number;
  /**
   * A process that stays in the helper's mount namespace, which the helper itself leaves at times: its
   * `/proc/PID/root` shows that namespace.
   */
  mountsPid: number;
  /** False once it has ended; calls then fail, and no event is reported any more. */
  alive(): boolean;
  stop(): Promise<void>;
};

/**
 * Starts the helper at `binary`, with its socket in `runDir` while it starts. It ends when the platform ends, however
 * that happens, and its mounts with it. `onLost` is called if it ends before it was stopped. Errors: `internal` if it
 * does not start.
 */
export async function startHelper(options: { binary: string; runDir: string; onLost(): void }): Promise<Helper> {
  return helperOf(await startHelperProcess(options));
}

/** The helper's operations over its process. */
export function helperOf({ pid, mountsPid, alive, exited, closed, stop, request }: HelperProcess): Helper {
  const call: Helper['call'] = async (name, args) => {
    // The table has the argument and answer types of each name; the compiler can't follow them through a variable
    // name.
    const { write, read } = operations[name] as {
      write(args: unknown): (string | number)[];
      read(fields: string[]): never;
    };
    return read(await request([name, ...write(args).map(String)]));
  };
  const places = createProgramPlaces();
  return {
    pid,
    mountsPid,
    alive,
    exited,
    stop,
    call,
    spawn(argv, { timeoutMs, stdin = '', groups = [], kind = kindByTime(timeoutMs), teamId, onPlace }) {
      const begin = () => {
        onPlace?.();
        return call('spawn', { timeoutMs, stdin, groups, argv });
      };
      return places.run(kind, begin, teamId);
    },
    start(tag, argv, { timeoutMs, stdin = '', groups = [] }) {
      const started = Promise.withResolvers<SpawnResult & { closed: Promise<void> }>();
      const start = async () => {
        const whenClosed = closed(tag);
        started.resolve({ ...(await call('start', { tag, timeoutMs, stdin, groups, argv })), closed: whenClosed });
        // The helper keeps its place for as long.
        await whenClosed;
      };
      places.run('start', start).catch(started.reject);
      return started.promise;
    },
  };
}

/** A path of the helper's mount namespace, as every process sees it. */
export function pathInHelper({ helper }: { helper: Pick<Helper, 'mountsPid'> }, path: string): string {
  return `/proc/${helper.mountsPid}/root${path}`;
}
