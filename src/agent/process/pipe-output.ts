import { closeSync } from 'node:fs';
import type { Native } from '../native.ts';

/** Bytes of an output, read only as fast as they are asked for. */
export type OutputReader = { read(): Promise<{ value?: Uint8Array | undefined; done: boolean }> };

/** Within this time, most programs that clients start are over, ms: what they wrote is read once they have ended. */
const briefMs = 3;
/** Pieces read without a stream: the capacity of a pipe of an ended program, 1 MiB, plus its end. */
const piecesMax = 17;

/** Resolves once a program has ended, or has run for too long to be a brief one. */
export function briefly(ended: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, briefMs);
  void ended.then(() => {
    clearTimeout(timer);
    resolve();
  });
  return promise;
}

/**
 * Reads a pipe, which belongs to the reader from now on. A stream of the runtime waits for what comes, and costs as
 * much as the rest of a brief program: turns of the loop, ten system calls, and at least 256 KiB of garbage. So no
 * stream is made before `brief`, nor for what is in the pipe by then.
 */
export function pipeReader(
  fd: number,
  brief: Promise<void>,
  native: Pick<Native, 'neverWait' | 'mayWait' | 'readNow'>,
): OutputReader {
  native.neverWait(fd);
  let stream: OutputReader | undefined;
  let isOver = false;
  let pieces = 0;
  return {
    async read() {
      if (stream) return stream.read();
      if (isOver) return { done: true };
      await brief;
      const value = pieces++ < piecesMax ? native.readNow(fd) : undefined;
      if (value && value.length > 0) return { value, done: false };
      isOver = true;
      try {
        if (!value) {
          // On a pipe that never waits, the runtime reads 128 KiB at once, into buffers so big that a few of them hold
          // 4 MiB.
          native.mayWait(fd);
          stream = Bun.file(fd).stream().getReader();
        }
      } finally {
        // The stream has a duplicate of it.
        closeSync(fd);
      }
      return stream?.read() ?? { done: true };
    },
  };
}
