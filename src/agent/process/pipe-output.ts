import { closeSync } from 'node:fs';
import type { Native } from '../native.ts';

/** Bytes of an output, read only as fast as they are asked for. */
export type OutputReader = { read(): Promise<{ value?: Uint8Array | undefined; done: boolean }> };

/** Most programs that clients start are over by then, ms: what they have said is read when they have ended. */
const briefMs = 3;
/** Pieces that are read by themselves: what a pipe can hold of one that has ended, 1 MiB, and its end. */
const piecesMax = 17;

/** Resolves when a program has ended, or is none that is over at once. */
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
 * Reads a pipe, which is the reader's from now on. A stream of the runtime's waits for what comes, and costs as much as
 * the rest of a program that is over at once: turns of the loop, ten system calls, and 256 KiB and more of garbage. So
 * there is none before `brief`, nor for what is in the pipe by then.
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
          // The runtime reads 128 KiB at once of one that never waits, in buffers of which few hold 4 MiB.
          native.mayWait(fd);
          stream = Bun.file(fd).stream().getReader();
        }
      } finally {
        // The stream has a duplicate.
        closeSync(fd);
      }
      return stream?.read() ?? { done: true };
    },
  };
}
