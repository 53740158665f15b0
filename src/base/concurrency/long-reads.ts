import { createFairSemaphore } from './fair-semaphore.ts';

/** Reads under way at a time, and of others of whom none is, beside them. */
const [readsMax, readsBeside] = [2, 1];

/** Runs a read of `owner` when it is its turn. */
export type InTurn = <T>(owner: string, read: () => T | Promise<T>) => Promise<T>;

/**
 * Turns of reads that take milliseconds of a process's only thread: logs, samples, large directories. Whoever asks for
 * many gets them one after the other, and everything else comes between them.
 */
export function turnsOfReads(): InTurn {
  const turns = createFairSemaphore(readsMax, readsBeside);
  return (owner, read) =>
    turns.run(owner, async () => {
      await new Promise(setImmediate);
      return read();
    });
}
