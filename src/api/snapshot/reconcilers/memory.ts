import { microsPerSecond } from '../../../base/clock.ts';
import { keepsUnknown } from '../../build/reconcilers/layers.ts';
import { memorySnapshotsInUse } from '../store/list.ts';
import type { OrphanDeps } from '../../operator/rules/orphans.ts';

/** How often this runs, milliseconds. */
export const snapshotsIntervalMs = 60_000;
/**
 * The memory of a snapshot younger than this may belong to one that nobody has recorded yet, or to a fork under way.
 */
const youngSeconds = 10 * 60;

/** Deletes the memory of snapshots that nothing can be made from any more, and of those that a crash cut off. */
export async function reconcileSnapshots({ clock, db, nodes }: OrphanDeps): Promise<void> {
  if (await keepsUnknown({ clock, db })) return;
  for (const { protocol } of nodes.list()) {
    const kept = await protocol.listSnapshots();
    const needed = new Set(await memorySnapshotsInUse(db));
    const oldestMs = (clock() - youngSeconds * microsPerSecond) / 1000;
    for (const { snapshotId, takenAtMs } of kept) {
      if (!needed.has(snapshotId) && takenAtMs < oldestMs) await protocol.deleteSnapshot(snapshotId);
    }
  }
}
