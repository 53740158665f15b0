import { messageOf } from '../../../base/error.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { forgetVolumeRemoval, volumeRemovalsOn } from '../store/removals.ts';
import { findVolume, volumesOnNode } from '../store/volumes.ts';
import type { RemoveVolumeDeps } from '../rules/volumes.ts';

/** How often this runs, milliseconds. */
export const volumesIntervalMs = 60_000;
/** A removal younger than this may belong to a create or a delete that is under way. */
const youngSeconds = 10 * 60;

/**
 * Deletes the content of volumes that were deleted, or never came to be: of creates that a crash cut off, and of
 * deletes that a node missed. Content that is merely unknown stays: it may be the store that is wrong.
 */
export async function reconcileVolumes({ clock, db, log, nodes }: RemoveVolumeDeps): Promise<void> {
  for (const { nodeId, protocol } of nodes.list()) {
    const oldestUs = clock() - youngSeconds * microsPerSecond;
    const removals = (await volumeRemovalsOn(db, nodeId)).filter(({ recordedAtUs }) => recordedAtUs < oldestUs);
    if (removals.length === 0) continue;
    const known = new Set(await volumesOnNode(db, nodeId));
    for (const { volumeId } of removals) {
      try {
        // Content that is moving there now will soon belong to the volume.
        if ((await findVolume(db, volumeId))?.movingTo === nodeId) continue;
        if (!known.has(volumeId)) await protocol.volumes.remove(volumeId);
        await forgetVolumeRemoval(db, { volumeId, nodeId });
      } catch (error) {
        log.warn('a volume that was deleted is deleted later', { volumeId, error: messageOf(error) });
      }
    }
  }
}
