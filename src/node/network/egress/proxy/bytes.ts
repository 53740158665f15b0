import type { SocketChannel } from './channel.ts';
import { Gathered } from './gathered.ts';

/** Reads `count` bytes after each other from a channel, for protocols with a fixed begin. What is left goes back. */
export type ByteReader = {
  read(count: number): Promise<Buffer>;
  /** Gives the channel back, with what was read too much. */
  release(): void;
};

/** Takes a channel over until `release`. Reads fail when it closes, or when not everything has come within the time. */
export function readBytes(channel: SocketChannel, timeoutMs: number): ByteReader {
  const have = new Gathered();
  let waiting: { count: number; resolve(bytes: Buffer): void; reject(error: Error): void } | undefined;
  const fail = (reason: string) => {
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
  channel.use({
    data(bytes) {
      have.append(bytes);
      settle();
    },
    drained() {},
    ended: () => fail('the connection was closed'),
    closed: () => fail('the connection was closed'),
  });
  return {
    read: count =>
      new Promise((resolve, reject) => {
        if (channel.isClosed) return reject(new Error('the connection was closed'));
        waiting = { count, resolve, reject };
        settle();
      }),
    release() {
      clearTimeout(timer);
      channel.unread(have.takeAll());
    },
  };
}
