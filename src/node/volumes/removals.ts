import { createFairSemaphore } from '../../base/concurrency/fair-semaphore.ts';
import { KeyedMutex } from '../../base/concurrency/keyed-mutex.ts';

/**
 * How many removals run at a time for anybody, and how many more places there are, one each, for teams that have none:
 * together more than the volumes that are copied at a time, because each copy may keep a removal waiting.
 */
const volumeRemovalsAtOnce = 6;
const spareRemovals = 2;

/** The volume that something is removed from, and its team. */
type RemovalOf = { volumeId: string; teamId: string | undefined };

/** Runs a part of a removal when it is its team's turn, and its own turn among the parts for its volume. */
type Removals = <T>(of: RemovalOf, part: () => Promise<T>) => Promise<T>;

/** The removals from the volumes of a node. */
export function createRemovals(): Removals {
  const all = createFairSemaphore(volumeRemovalsAtOnce, spareRemovals);
  const inVolume = new KeyedMutex<string>();
  return ({ volumeId, teamId }, part) => inVolume.run(volumeId, () => all.run(teamId, part));
}
