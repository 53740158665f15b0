import { AtollError, messageOf } from '../../base/error.ts';

/** Bytes that may wait, over all calls, for a program that doesn't read its input; further calls are refused. */
const waitingBytesMax = 256 << 20;

/**
 * The input of a program: its stdin or its terminal. Writes happen in the order of the calls, and answer once the
 * kernel has taken them.
 */
export type Input = {
  readonly kind: 'stdin' | 'pty';
  write(bytes: Uint8Array): Promise<void>;
  /** Ends the input after what was written. May be called twice. */
  close(): Promise<void>;
};

/** Writes to a duplicate of `fd`: the caller must still close `fd`. */
export function openInput(kind: Input['kind'], fd: number): Input {
  const sink = Bun.file(fd).writer({ highWaterMark: 64 << 10 });
  let last: Promise<unknown> = Promise.resolve();
  let waitingBytes = 0;
  let closed = false;

  const inOrder = (step: () => Promise<void>): Promise<void> => {
    const next = last.then(step, step);
    last = next.catch(() => {});
    return next;
  };

  return {
    kind,
    async write(bytes) {
      if (closed) throw new AtollError('internal', `the ${kind} of the process is closed`);
      if (waitingBytes + bytes.length > waitingBytesMax) {
        throw new AtollError('rate_limited', `the process does not read its input: ${waitingBytes} bytes wait already`);
      }
      waitingBytes += bytes.length;
      try {
        await inOrder(async () => {
          await sink.write(bytes);
          await sink.flush();
        });
      } catch (error) {
        throw new AtollError('internal', `the process does not take input: ${messageOf(error)}`, { cause: error });
      } finally {
        waitingBytes -= bytes.length;
      }
    },
    async close() {
      if (closed) return;
      closed = true;
      // This fails if the program closed its end first; it then wants nothing more.
      await inOrder(async () => void (await sink.end())).catch(() => {});
    },
  };
}
