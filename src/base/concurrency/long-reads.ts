import { createFairSemaphore } from './fair-semaphore.ts';

/** Reads under way at a time where each is of this thread, and of others of whom none is, beside them. */
const [readsMax, readsBeside] = [2, 1];

/** For so long reads follow each other in one turn of the loop, ms: short ones need not wait for the next each. */
const turnMsMax = 4;

/** Runs a read of `owner` when it is its turn. `atOnce`: reads that share the thread's time. */
export type InTurn = (<T>(owner: string, read: () => T | Promise<T>) => Promise<T>) & { readonly atOnce: number };

/**
 * Turns of reads that take milliseconds of a process's only thread: logs, samples, large directories. Whoever asks for
 * many gets them one after the other, and everything else comes between them.
 */
export function turnsOfReads(atOnce = readsMax): InTurn {
  const turns = createFairSemaphore(atOnce, readsBeside);
  /** When the first read of this turn of the loop began; undefined: none has. */
  let begunAt: number | undefined;
  const inTurn = <T>(owner: string, read: () => T | Promise<T>): Promise<T> =>
    turns.run(owner, async () => {
      if (begunAt !== undefined && performance.now() - begunAt > turnMsMax) await new Promise(setImmediate);
      if (begunAt === undefined) setImmediate(() => (begunAt = undefined));
      begunAt ??= performance.now();
      return read();
    });
  return Object.assign(inTurn, { atOnce });
}
