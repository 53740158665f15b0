import { statfs } from 'node:fs/promises';
import { AtollError } from '../../../base/error.ts';

/** Sandboxes that come at a time, and snapshots, and volumes. */
const arrivalsMax = 4;
/** What one that comes must leave of the disk. */
const diskReserveBytes = 1 << 30;

/**
 * Throws `unavailable` or `no_space` where `folder`, to which so many come already, takes no more of so many bytes.
 * `what` comes, for the error.
 */
export async function admitArrival(
  folder: string,
  arriving: number,
  sizeBytes: number,
  what: 'sandbox' | 'volume' = 'sandbox',
): Promise<void> {
  if (arriving >= arrivalsMax)
    throw new AtollError('unavailable', `${arrivalsMax} ${what}s come to this node, which is the most at a time`, {
      retryAfterSeconds: 2,
    });
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize - sizeBytes < diskReserveBytes)
    throw new AtollError('no_space', `The disk of this machine has no room for the ${what}`);
}
