import { microsPerSecond } from '../app/clock.ts';
import type { App } from '../app/context.ts';
import { keepsUnknown } from './layers.ts';
import { memorySnapshotsInUse } from '../store/snapshot-list.ts';

export const snapshotsIntervalMs = 60_000;
/** The memory of a snapshot younger than this may belong to one that nobody has recorded yet, or to a fork under way. */
const youngSeconds = 10 * 60;

/** Deletes the memory of snapshots that nothing can be made from any more, and of those that a crash cut off. */
export async function reconcileSnapshots(app: App): Promise<void> {
  if (await keepsUnknown(app)) return;
  for (const { protocol } of app.nodes.list()) {
    const kept = await protocol.listSnapshots();
    const needed = new Set(await memorySnapshotsInUse(app.store.db));
    const oldestMs = (app.clock() - youngSeconds * microsPerSecond) / 1000;
    for (const { snapshotId, takenAtMs } of kept) {
      if (!needed.has(snapshotId) && takenAtMs < oldestMs) await protocol.deleteSnapshot(snapshotId);
    }
  }
}
