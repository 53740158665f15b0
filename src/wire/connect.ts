import { AtollError } from '../base/error.ts';
import { lost } from '../protocol/part-lost.ts';
import { type Calls, callsOn } from './call.ts';
import type { CheckedMethod } from './checked.ts';
import { closeFile, connectTo, receiveFile } from './files.ts';
import type { Channel } from './channel.ts';
import { SocketChannel } from './socket-channel.ts';

/** Longest wait of a call for a process that is starting, milliseconds. After that, clients are told to try again. */
const connectTimeoutMs = 5_000;
const greetingTimeoutMs = 2_000;
const pollMs = { first: 1, max: 50 } as const;

/** Calls of a process that may end and come back: each uses the present connection, or waits briefly for one. */
type Connection = Calls & {
  /** Gives up the present connection and all calls under way on it; the next call connects anew. */
  drop(): void;
  /** Closes it for good. */
  close(): void;
};

/** Calls the process that listens at a unix socket. The first call connects. `part`: its name, for messages. */
export function connectionTo(path: string, part: string, timeoutMs: number = connectTimeoutMs): Connection {
  return connectionBy(() => openUnix(path), part, timeoutMs);
}

/**
 * Calls what is behind the channels that `open` opens; if that answers undefined, there is none now. The first call
 * connects.
 */
export function connectionBy(
  open: () => Promise<Channel | undefined>,
  part: string,
  timeoutMs: number = connectTimeoutMs,
): Connection {
  let current: { calls: Calls; channel: Channel } | undefined;
  let connecting: Promise<Calls> | undefined;
  let isClosed = false;

  async function connect(): Promise<Calls> {
    const deadline = performance.now() + timeoutMs;
    for (let waitMs: number = pollMs.first; ; waitMs = Math.min(waitMs * 2, pollMs.max)) {
      if (isClosed) throw lost(part, 'is not asked any more');
      const channel = await open().catch(() => undefined);
      if (channel) {
        const made = { channel, calls: callsOn(channel, part, () => current === made && (current = undefined)) };
        current = made;
        if (isClosed) channel.close();
        return made.calls;
      }
      if (performance.now() > deadline) throw lost(part, 'is not there');
      await Bun.sleep(waitMs);
    }
  }

  return {
    async call(method: CheckedMethod, args, signal) {
      if (current) return current.calls.call(method, args, signal);
      connecting ??= connect().finally(() => (connecting = undefined));
      const calls = await connecting;
      return calls.call(method, args, signal);
    },
    drop: () => current?.channel.close(),
    close() {
      isClosed = true;
      current?.channel.close();
    },
  };
}

/** A channel to the process that listens there; undefined where none does. */
async function openUnix(path: string): Promise<Channel | undefined> {
  const fd = connectTo(path);
  if (fd === undefined) return undefined;
  const files = await greeting(fd).catch((error: unknown) => {
    closeFile(fd);
    throw error;
  });
  const opened: { channel?: SocketChannel } = {};
  // The runtime accepts a connected descriptor where the types know only an address.
  const options = {
    fd,
    socket: {
      open(socket: Bun.Socket) {
        opened.channel = new SocketChannel(socket, files);
      },
      data: (_: Bun.Socket, bytes: Uint8Array) => opened.channel?.received(bytes),
      drain: () => opened.channel?.drained(),
      close: () => opened.channel?.closed(),
      error: (socket: Bun.Socket) => void socket.terminate(),
    },
  };
  await Bun.connect(options as unknown as Bun.UnixSocketOptions<undefined>);
  return opened.channel;
}

/** Receives the socket for files, which the other side passes first. */
async function greeting(fd: number): Promise<number> {
  const deadline = performance.now() + greetingTimeoutMs;
  for (;;) {
    const received = receiveFile(fd);
    if (typeof received === 'object') return received.file;
    if (received === 'failed' || performance.now() > deadline)
      throw new AtollError('unavailable', 'the other side did not greet');
    await Bun.sleep(pollMs.first);
  }
}
