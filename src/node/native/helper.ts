import type { Socket } from 'bun';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';

/** A system call that the native helper could not carry out. `errno` is the kernel's number. */
export class HelperError extends AtollError {
  readonly errno: number;
  constructor(errno: number, message: string) {
    super('internal', message, { fields: { errno } });
    this.errno = errno;
  }
}

export type SpawnResult = {
  /** Exit status, or 128 + the signal's number. */
  status: number;
  /** The last 4 KiB of what it printed, line ends as spaces. */
  output: string;
};

/** The process that does what needs raw system calls; native/helper.c says what each operation does. */
export type Helper = {
  /** Carries out one operation and answers its result fields. Fails with `HelperError`. */
  call(op: string, ...args: (string | number)[]): Promise<string[]>;
  /** Runs a program in the helper's mount namespace and answers when it has ended. `NAME=value` before it is for its environment, `stdin` is one line. */
  spawn(argv: string[], options: { timeoutMs: number; stdin?: string }): Promise<SpawnResult>;
  /** Resolves when the watched process has ended. */
  exited(tag: string): Promise<void>;
  pid: number;
  /** A process that is always in the helper's mount namespace, as the helper itself is not: its `/proc/PID/root` shows it. */
  mountsPid: number;
  /** False once it has ended; calls fail then, and nothing is reported any more. */
  alive(): boolean;
  stop(): Promise<void>;
};

const startTimeoutMs = 5_000;

type Pending = { resolve(fields: string[]): void; reject(error: Error): void };

/** Starts the helper at `binary`. It ends when the platform ends, however that happens, and its mounts with it. */
export async function startHelper(options: { binary: string; runDir: string; log: Log; onLost(): void }): Promise<Helper> {
  const socketPath = join(options.runDir, `helper-${process.pid}.sock`);
  const pending = new Map<string, Pending>();
  const watched = new Map<string, () => void>();
  const connected = Promise.withResolvers<Socket>();
  const ready = Promise.withResolvers<number>();
  let stopping = false;
  let alive = true;
  let tail: Buffer = Buffer.alloc(0);

  const take = (line: string) => {
    const [id = '', kind, ...fields] = line.split('\t');
    if (id === '!') {
      if (kind === 'ready') return ready.resolve(Number(fields[0]));
      watched.get(fields[0] ?? '')?.();
      watched.delete(fields[0] ?? '');
      return;
    }
    const call = pending.get(id);
    pending.delete(id);
    if (kind === 'ok') call?.resolve(fields);
    else call?.reject(new HelperError(Number(fields[0]), fields[1] ?? 'failed'));
  };

  const server = Bun.listen({
    unix: socketPath,
    socket: {
      open: socket => connected.resolve(socket),
      data(_, bytes) {
        tail = tail.length ? Buffer.concat([tail, bytes]) : Buffer.from(bytes);
        for (let end; (end = tail.indexOf(10)) >= 0; tail = tail.subarray(end + 1)) take(tail.toString('utf8', 0, end));
      },
      close() {
        alive = false;
        for (const call of pending.values()) call.reject(new AtollError('internal', 'the native helper has ended'));
        pending.clear();
        if (!stopping) options.onLost();
      },
    },
  });
  const child = Bun.spawn([options.binary, socketPath], { stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' });
  const timer = setTimeout(() => ready.reject(new AtollError('internal', 'the native helper did not start')), startTimeoutMs);
  const [socket, mountsPid] = await Promise.all([connected.promise, ready.promise]).finally(() => {
    clearTimeout(timer);
    server.stop();
    rmSync(socketPath, { force: true });
  });

  let lastId = 0;
  let unsent: Buffer = Buffer.alloc(0);
  const send = (bytes: Buffer) => {
    // Requests are small; what the socket does not take at once is put in front of the next one.
    unsent = unsent.length ? Buffer.concat([unsent, bytes]) : bytes;
    const written = socket.write(unsent);
    unsent = written < unsent.length ? unsent.subarray(Math.max(written, 0)) : Buffer.alloc(0);
    if (unsent.length) setTimeout(() => send(Buffer.alloc(0)), 1);
  };
  const call = (op: string, ...args: (string | number)[]): Promise<string[]> => {
    const fields = [op, ...args.map(String)];
    const bad = fields.find(field => field.includes('\0') || field.includes('\n'));
    if (bad !== undefined) throw new AtollError('invalid', 'a path or argument holds a line end or a NUL');
    const id = String(++lastId);
    return new Promise((resolve, reject) => {
      pending.set(id, { resolve, reject });
      send(Buffer.from(`${id}\0${fields.join('\0')}\0\n`));
    });
  };

  return {
    pid: child.pid,
    mountsPid,
    alive: () => alive,
    call,
    async spawn(argv, { timeoutMs, stdin = '' }) {
      const [status, output = ''] = await call('spawn', timeoutMs, stdin, ...argv);
      return { status: Number(status), output };
    },
    exited: tag => new Promise(resolve => watched.set(tag, resolve)),
    async stop() {
      stopping = true;
      socket.end();
      await child.exited;
    },
  };
}

/** A path of the helper's mount namespace, as every process sees it. */
export function pathInHelper({ helper }: { helper: Pick<Helper, 'mountsPid'> }, path: string): string {
  return `/proc/${helper.mountsPid}/root${path}`;
}
