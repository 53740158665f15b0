import { inheritedEnvironment } from '../../base/process/inherited.ts';
import type { Socket } from 'bun';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { shortageOf } from '../../protocol/no-room.ts';
import { lost } from '../../protocol/part-lost.ts';

const startTimeoutMs = 5_000;

/** A system call that the native helper could not carry out. `errno` is the kernel's number. */
export class HelperError extends AtollError {
  readonly errno: number;
  constructor(errno: number, message: string) {
    const shortage = shortageOf(errno, message);
    super(shortage?.code ?? 'internal', shortage?.message ?? message, {
      fields: { errno },
      ...(shortage?.detail !== undefined && { detail: shortage.detail }),
    });
    this.errno = errno;
  }
}

/** The helper as a process: requests and answers as fields of text. */
export type HelperProcess = {
  pid: number;
  /** A process that stays in the helper's mount namespace, which the helper itself leaves at times. */
  mountsPid: number;
  /**
   * Sends a request and answers its result fields. Fails with `HelperError`; with `invalid` if a field can't be sent,
   * and with `internal` once the helper has ended.
   */
  request(fields: readonly string[]): Promise<string[]>;
  /** Resolves when the watched process has ended. */
  exited(tag: string): Promise<void>;
  /** Resolves when nobody holds the output of the program with this tag any more. */
  closed(tag: string): Promise<void>;
  alive(): boolean;
  stop(): Promise<void>;
};

type Pending = { resolve(fields: string[]): void; reject(error: Error): void };

/** Requests under way, by their IDs, and events that callers wait for, by their kinds and tags. */
function createAnswers() {
  const pending = new Map<string, Pending>();
  const awaited = { exit: new Map<string, () => void>(), closed: new Map<string, () => void>() };
  const ready = Promise.withResolvers<number>();
  let lastId = 0;

  const takeEvent = (kind: string | undefined, field = '') => {
    if (kind === 'ready') return ready.resolve(Number(field));
    if (kind !== 'exit' && kind !== 'closed') return;
    awaited[kind].get(field)?.();
    awaited[kind].delete(field);
  };
  const event = (kind: keyof typeof awaited) => (tag: string) =>
    new Promise<void>(resolve => awaited[kind].set(tag, resolve));
  return {
    ready,
    exited: event('exit'),
    closed: event('closed'),
    /** Begins a request: its ID, and a promise of its answer. */
    begin() {
      const id = String(++lastId);
      const { promise, ...call } = Promise.withResolvers<string[]>();
      pending.set(id, call);
      return { id, answer: promise };
    },
    take(line: string) {
      const [id = '', kind, ...fields] = line.split('\t');
      if (id === '!') return takeEvent(kind, fields[0]);
      const call = pending.get(id);
      pending.delete(id);
      if (kind === 'ok') call?.resolve(fields);
      else call?.reject(new HelperError(Number(fields[0]), fields[1] ?? 'failed'));
    },
    failAll() {
      for (const call of pending.values()) call.reject(hasEnded());
      pending.clear();
    },
  };
}

/** Cuts what arrives into lines. */
function createLines(onLine: (line: string) => void): (bytes: Uint8Array) => void {
  let rest: Buffer = Buffer.alloc(0);
  return bytes => {
    rest = rest.length ? Buffer.concat([rest, bytes]) : Buffer.from(bytes);
    for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) onLine(rest.toString('utf8', 0, end));
  };
}

/** Writes to a socket. What it does not take at once is written first when it is ready again. */
function createWriter() {
  let unsent: Buffer = Buffer.alloc(0);
  const flush = (socket: Socket) => {
    const written = Math.max(socket.write(unsent), 0);
    unsent = unsent.subarray(written);
  };
  return {
    write(socket: Socket, bytes: Buffer) {
      const isWaiting = unsent.length > 0;
      unsent = isWaiting ? Buffer.concat([unsent, bytes]) : bytes;
      if (!isWaiting) flush(socket);
    },
    drain(socket: Socket) {
      if (unsent.length > 0) flush(socket);
    },
  };
}

/**
 * Starts the helper at `binary`. It ends when this process ends, however that happens, and its mounts with it.
 * `onLost` is called if it ends without having been stopped. Errors: `internal` if it does not start.
 */
export async function startHelperProcess({
  binary,
  runDir,
  onLost,
}: {
  binary: string;
  runDir: string;
  onLost(): void;
}): Promise<HelperProcess> {
  const socketPath = join(runDir, `helper-${process.pid}.sock`);
  const answers = createAnswers();
  const lines = createLines(answers.take);
  const writer = createWriter();
  const connected = Promise.withResolvers<Socket>();
  let stopping = false;
  let alive = true;
  const end = () => {
    if (!alive) return;
    alive = false;
    answers.failAll();
    if (!stopping) onLost();
  };

  const server = Bun.listen({
    unix: socketPath,
    socket: {
      open: socket => connected.resolve(socket),
      data: (_, bytes) => lines(bytes),
      drain: writer.drain,
      close: end,
    },
  });
  const child = Bun.spawn([binary, socketPath], {
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'inherit',
    env: inheritedEnvironment(),
  });
  // A process that the helper has made could hold the socket for longer.
  void child.exited.then(end);
  const timer = setTimeout(
    () => answers.ready.reject(new AtollError('internal', 'the native helper did not start')),
    startTimeoutMs,
  );
  const [socket, mountsPid] = await Promise.all([connected.promise, answers.ready.promise]).finally(() => {
    clearTimeout(timer);
    server.stop();
    rmSync(socketPath, { force: true });
  });

  return {
    pid: child.pid,
    mountsPid,
    alive: () => alive,
    exited: answers.exited,
    closed: answers.closed,
    async request(fields) {
      if (fields.some(field => field.includes('\0') || field.includes('\n')))
        throw new AtollError('invalid', 'a path or argument holds a line end or a NUL');
      if (!alive) throw hasEnded();
      const { id, answer } = answers.begin();
      writer.write(socket, Buffer.from(`${id}\0${fields.join('\0')}\0\n`));
      return answer;
    },
    async stop() {
      stopping = true;
      socket.end();
      await child.exited;
    },
  };
}

/** The node ends with its helper, and is started again with another. */
function hasEnded(): AtollError {
  return lost('native helper', 'has ended before it answered');
}
