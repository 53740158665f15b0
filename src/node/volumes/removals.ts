import { KeyedMutex } from '../../base/concurrency/keyed-mutex.ts';
import { createSemaphore } from '../../base/concurrency/semaphore.ts';

/** Removals at a time: more than volumes are copied at a time, as each copy may keep one waiting. */
const volumeRemovalsAtOnce = 8;

/** Runs a part of a removal when it is its volume's turn, and that of the part among those of its volume. */
type Removals = <T>(volumeId: string, part: () => Promise<T>) => Promise<T>;

/** The removals from the volumes of a node. */
export function createRemovals(): Removals {
  const all = createSemaphore(volumeRemovalsAtOnce);
  const inVolume = new KeyedMutex<string>();
  return (volumeId, part) => inVolume.run(volumeId, () => all.run(part));
}
