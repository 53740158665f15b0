import { closeSync, read, write } from 'node:fs';
import { promisify } from 'node:util';
import { AtollError } from '../base/error.ts';

// Moves bytes between files and connected sockets. Each function owns the descriptor that it gets.

const readFrom = promisify(read);
const writeTo = promisify(write);
const pieceBytes = 256 << 10;
/** Bytes of a socket that may wait for their reader; beyond that, reading pauses. */
const aheadBytesMax = 1 << 20;

/** A destination of bytes, in order. */
type Sink = {
  write(bytes: Uint8Array): Promise<void>;
  /** All bytes were written. */
  end(): Promise<void>;
  /** The source failed before its end. */
  abort(): void;
};

/** The content of a file from the descriptor's present position. */
export async function* fileSource(fd: number): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const { bytesRead, buffer } = await readFrom(fd, Buffer.allocUnsafe(pieceBytes), 0, pieceBytes, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    closeSync(fd);
  }
}

/** Writes to a file. */
export function fileSink(fd: number): Sink {
  return {
    async write(bytes) {
      for (let done = 0; done < bytes.length;)
        done += (await writeTo(fd, bytes, done, bytes.length - done, null)).bytesWritten;
    },
    end: async () => closeSync(fd),
    abort: () => closeSync(fd),
  };
}

type Local = Bun.Socket<undefined>;

function opened(fd: number, handlers: Partial<Bun.SocketHandler<undefined>>): Promise<Local> {
  const socket = { data() {}, error: (failed: Local) => void failed.terminate(), ...handlers };
  // The runtime accepts a connected descriptor where the types know only an address.
  return Bun.connect({ fd, allowHalfOpen: true, socket } as unknown as Bun.UnixSocketOptions<undefined>);
}

/**
 * The bytes that a socket sends, to its end. The socket is closed with the generator, even if nobody has begun to read.
 */
export function socketSource(fd: number): AsyncGenerator<Uint8Array> {
  const source = received(fd);
  let isBegun = false;
  const next = () => {
    isBegun = true;
    return source.next();
  };
  const close = async () => {
    // Before its first `next`, nothing of a generator runs, not even the code that releases what it owns.
    if (!isBegun) closeSync(fd);
    isBegun = true;
    return source.return(undefined);
  };
  return Object.assign(Object.create(source), {
    next,
    return: close,
    [Symbol.asyncIterator]() {
      return this;
    },
  });
}

async function* received(fd: number): AsyncGenerator<Uint8Array> {
  const waiting: Buffer[] = [];
  let bytes = 0;
  let isOver = false;
  let wake = () => {};
  const over = () => {
    isOver = true;
    wake();
  };
  const socket = await opened(fd, {
    data(from, part) {
      waiting.push(Buffer.from(part));
      bytes += part.length;
      if (bytes > aheadBytesMax) from.pause();
      wake();
    },
    end: over,
    close: over,
  });
  try {
    for (;;) {
      const next = waiting.shift();
      if (next) {
        bytes -= next.length;
        if (bytes <= aheadBytesMax && !isOver) socket.resume();
        yield next;
      } else if (isOver) return;
      else await new Promise<void>(resolve => (wake = resolve));
    }
  } finally {
    socket.end();
  }
}

/** Writes to a socket, as fast as the other side reads. */
export async function socketSink(fd: number): Promise<Sink> {
  let isGone = false;
  let wake = () => {};
  const socket = await opened(fd, {
    drain: () => wake(),
    // Not earlier: the runtime gives up a socket whose other side is closed, together with its unread bytes.
    end: ended => void ended.end(),
    close() {
      isGone = true;
      wake();
    },
  });
  return {
    async write(bytes) {
      for (let done = 0; done < bytes.length;) {
        if (isGone) throw new AtollError('unavailable', 'The other side takes no more bytes');
        done += Math.max(socket.write(bytes.subarray(done)), 0);
        if (done < bytes.length) await new Promise<void>(resolve => (wake = resolve));
      }
    },
    end: async () => void socket.shutdown(),
    abort: () => void socket.terminate(),
  };
}

/**
 * The bytes of a source, no more than the announced `bytesMax`: room was kept for that many. Errors: `invalid` when
 * more come.
 */
export async function* bounded(source: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const piece of source) {
    bytes += piece.length;
    if (bytes > bytesMax) throw new AtollError('invalid', `more came than the ${bytesMax} bytes that were announced`);
    yield piece;
  }
}

/** Moves all bytes from a source to a sink. */
export async function pump(source: AsyncIterable<Uint8Array>, sink: Sink): Promise<void> {
  try {
    for await (const bytes of source) await sink.write(bytes);
  } catch (error) {
    sink.abort();
    throw error;
  }
  await sink.end();
}
