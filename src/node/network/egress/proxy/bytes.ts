import type { SocketChannel } from './channel.ts';
import { Gathered } from './gathered.ts';

/** Reads a channel `count` bytes at a time, for protocols with a fixed beginning. Bytes that are left over go back. */
type ByteReader = {
  read(count: number): Promise<Buffer>;
  /** Gives the channel back, with the bytes that were read too far. */
  release(): void;
};

/** Takes a channel over until `release`. Reads fail when it closes, or when the bytes do not come in time. */
export function readBytes(channel: SocketChannel, timeoutMs: number): ByteReader {
  const have = new Gathered();
  let waiting: { count: number; resolve(bytes: Buffer): void; reject(error: Error): void } | undefined;
  /**
   * Why nothing more comes. Bytes that have come are still read: a server that refuses may close right after its
   * answer.
   */
  let over: string | undefined;
  const fail = (reason: string) => {
    over ??= reason;
    clearTimeout(timer);
    waiting?.reject(new Error(reason));
    waiting = undefined;
    channel.abort();
  };
  const timer = setTimeout(() => fail('no answer in time'), timeoutMs);
  const settle = () => {
    if (!waiting || have.length < waiting.count) return;
    const { count, resolve } = waiting;
    waiting = undefined;
    resolve(have.take(count));
  };
  const end = () => {
    over ??= 'the connection was closed';
    if (waiting) fail(over);
  };
  channel.use({
    data(bytes) {
      have.append(bytes);
      settle();
    },
    drained() {},
    ended: () => end(),
    closed: () => end(),
  });
  return {
    read: count =>
      new Promise((resolve, reject) => {
        waiting = { count, resolve, reject };
        settle();
        if (waiting && (over !== undefined || channel.isClosed)) fail(over ?? 'the connection was closed');
      }),
    release() {
      clearTimeout(timer);
      channel.unread(have.takeAll());
    },
  };
}
