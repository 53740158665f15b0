import { messageOf } from '../../base/error.ts';
import { microsPerSecond } from '../app/clock.ts';
import type { App } from '../app/context.ts';
import { forgetVolumeRemoval, volumeRemovalsOn } from '../store/orphans.ts';
import { volumesOnNode } from '../store/volumes.ts';

export const volumesIntervalMs = 60_000;
/** A removal younger than this may be of a create or a delete that is under way. */
const youngSeconds = 10 * 60;

/**
 * Deletes the content of volumes that were deleted, or never came to be: of creates that a crash cut off, and of deletes that a node
 * missed. What is merely unknown stays: it may be the store that is wrong.
 */
export async function reconcileVolumes(app: App): Promise<void> {
  for (const { nodeId, protocol } of app.nodes.list()) {
    const oldestUs = app.clock() - youngSeconds * microsPerSecond;
    const removals = (await volumeRemovalsOn(app.store.db, nodeId)).filter(({ notedAtUs }) => notedAtUs < oldestUs);
    if (removals.length === 0) continue;
    const known = new Set(await volumesOnNode(app.store.db, nodeId));
    for (const { volumeId } of removals) {
      try {
        if (!known.has(volumeId)) await protocol.volumes.remove(volumeId);
        await forgetVolumeRemoval(app.store.db, volumeId);
      } catch (error) {
        app.log.warn('a volume that was deleted is deleted later', { volumeId, error: messageOf(error) });
      }
    }
  }
}
