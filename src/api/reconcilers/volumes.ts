import { messageOf } from '../../base/error.ts';
import { microsPerSecond } from '../app/clock.ts';
import type { App } from '../app/context.ts';
import { volumesOnNode } from '../store/volumes.ts';

export const volumesIntervalMs = 60_000;
/** A volume younger than this may be one whose row is about to be written. */
const youngSeconds = 10 * 60;

/** Deletes the content of volumes that the store does not know: of creates that a crash cut off, and of deletes that a node missed. */
export async function reconcileVolumes(app: App): Promise<void> {
  for (const { nodeId, protocol } of app.nodes.list()) {
    const present = await protocol.volumes.list();
    const known = new Set(await volumesOnNode(app.store.db, nodeId));
    const oldestMs = (app.clock() - youngSeconds * microsPerSecond) / 1000;
    for (const { volumeId, createdAtMs } of present) {
      if (known.has(volumeId) || createdAtMs >= oldestMs) continue;
      await protocol.volumes.remove(volumeId).catch((error: unknown) => {
        app.log.warn('a volume that the store does not know can’t be deleted', { volumeId, error: messageOf(error) });
      });
    }
  }
}
