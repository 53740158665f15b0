import { createFairSemaphore } from '../../base/concurrency/fair-semaphore.ts';
import { KeyedMutex } from '../../base/concurrency/keyed-mutex.ts';

/**
 * Removals at a time, whosever they are, and one each of so many teams beside of whom none is: together more than
 * volumes are copied at a time, as each copy may keep one waiting.
 */
const volumeRemovalsAtOnce = 6;
const spareRemovals = 2;

/** Whose volume something is removed from. */
type RemovalOf = { volumeId: string; teamId: string | undefined };

/** Runs a part of a removal when it is its team's turn, and that of the part among those of its volume. */
type Removals = <T>(of: RemovalOf, part: () => Promise<T>) => Promise<T>;

/** The removals from the volumes of a node. */
export function createRemovals(): Removals {
  const all = createFairSemaphore(volumeRemovalsAtOnce, spareRemovals);
  const inVolume = new KeyedMutex<string>();
  return ({ volumeId, teamId }, part) => inVolume.run(volumeId, () => all.run(teamId, part));
}
