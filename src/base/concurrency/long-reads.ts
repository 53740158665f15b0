import { createFairSemaphore } from './fair-semaphore.ts';

/**
 * Reads under way at a time, each of which uses this thread; and how many more may run beside them, for owners that
 * have none under way.
 */
const [readsMax, readsBeside] = [2, 1];

/**
 * How long reads follow each other within one turn of the loop, ms: short ones need not wait for the next turn each.
 */
const turnMsMax = 4;

/** Runs a read of `owner` when it is its turn. `atOnce`: reads that share the thread's time. */
export type InTurn = (<T>(owner: string, read: () => T | Promise<T>) => Promise<T>) & { readonly atOnce: number };

/**
 * Turns of reads that take milliseconds of a process's only thread: logs, samples, large directories. An owner who asks
 * for many gets them one after the other, and everything else comes in between.
 */
export function turnsOfReads(atOnce = readsMax): InTurn {
  const turns = createFairSemaphore(atOnce, readsBeside);
  /** When the first read of this turn of the loop began; undefined: none has yet. */
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
