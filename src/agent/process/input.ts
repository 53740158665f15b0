import { AtollError, messageOf } from '../../base/error.ts';

/** Bytes that may wait for a program that doesn't read its input, over all calls; more calls are refused. */
const waitingBytesMax = 256 << 20;

/**
 * The input of a program: its stdin or its terminal. Writes go in the order of the calls and answer when the kernel has
 * taken them.
 */
export type Input = {
  readonly kind: 'stdin' | 'pty';
  write(bytes: Uint8Array): Promise<void>;
  /** Ends the input after what was written. Twice is fine. */
  close(): Promise<void>;
};

/** Writes to a duplicate of `fd`: the caller still has to close it. */
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
      // A program that closed its end first makes this fail, and wants nothing more.
      await inOrder(async () => void (await sink.end())).catch(() => {});
    },
  };
}
