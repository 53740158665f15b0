import { keepsUnknown } from '../../build/reconcilers/layers.ts';
import { memorySnapshotsInUse } from '../store/list.ts';
import type { OrphanDeps } from '../../operator/rules/orphans.ts';

/** How often this runs, milliseconds. */
export const snapshotsIntervalMs = 60_000;
/**
 * Memory that nothing has needed for less than this may belong to a snapshot that nobody has recorded yet, or to a fork
 * under way. Milliseconds.
 */
const unneededMs = 10 * 60_000;

/**
 * Deletes the memory of snapshots that nothing can be made from any more, and of those that a crash cut off: what was
 * unneeded in a round, and still is in one that much later. When a machine says that it was taken is by its own clock,
 * which may be wrong, and says nothing. `nowMs`: a clock that nobody can set.
 */
export function snapshotKeeping(
  { clock, db, nodes }: OrphanDeps,
  nowMs: () => number = () => performance.now(),
): () => Promise<void> {
  /** Since when each node's snapshots are known to be unneeded. */
  const unneeded = new Map<string, ReadonlyMap<string, number>>();
  return async () => {
    // What is unneeded before may be needed by what is known afterwards.
    if (await keepsUnknown({ clock, db })) return unneeded.clear();
    const listed = nodes.list();
    for (const nodeId of unneeded.keys()) if (!listed.some(node => node.nodeId === nodeId)) unneeded.delete(nodeId);
    for (const { nodeId, protocol } of listed) {
      const kept = await protocol.listSnapshots();
      const needed = new Set(await memorySnapshotsInUse(db));
      const now = nowMs();
      const before = unneeded.get(nodeId);
      const since = kept
        .filter(({ snapshotId }) => !needed.has(snapshotId))
        .map(({ snapshotId }) => [snapshotId, before?.get(snapshotId) ?? now] as const);
      unneeded.set(nodeId, new Map(since));
      for (const [snapshotId, sinceMs] of since)
        if (now - sinceMs >= unneededMs) await protocol.deleteSnapshot(snapshotId);
    }
  };
}
