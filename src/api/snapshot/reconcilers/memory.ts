import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { keepsUnknown } from '../../build/reconcilers/layers.ts';
import { memorySnapshotsInUse } from '../store/list.ts';
import type { OrphanDeps } from '../../operator/rules/orphans.ts';

/** How often this runs, milliseconds. */
export const snapshotsIntervalMs = 60_000;
/**
 * Memory that has been unneeded for less than this may belong to a snapshot that is not recorded yet, or to a fork
 * under way. Milliseconds.
 */
const unneededMs = 10 * 60_000;

const nodesAtOnce = 8;

/** Dependencies of deleting unneeded memory. */
type KeepingDeps = OrphanDeps & { log: Log };

/**
 * Deletes the memory of snapshots that nothing can be made from any more, and of those that a crash cut off: it must be
 * unneeded in one round, and still in one that much later. The machine's own time of a snapshot is not used, as its
 * clock may be wrong. A machine that does not answer gets its turn in a later round. `nowMs`: a clock that nobody can
 * set.
 */
export function snapshotKeeping(
  { clock, db, nodes, log }: KeepingDeps,
  nowMs: () => number = () => performance.now(),
): () => Promise<void> {
  /** Since when snapshots are known to be unneeded, by node. */
  const unneeded = new Map<string, ReadonlyMap<string, number>>();
  /** Does the work at each machine independently. */
  const atEach = (listed: readonly Listed[], work: (node: Listed) => Promise<void>) =>
    forEachParallel(listed, nodesAtOnce, node =>
      work(node).catch((error: unknown) =>
        log.warn('memory that nothing needs is looked for again', { nodeId: node.nodeId, error: messageOf(error) }),
      ),
    );
  return async () => {
    // What was unneeded before may be needed when more is known.
    if (await keepsUnknown({ clock, db })) return unneeded.clear();
    const listed = nodes.list();
    for (const nodeId of unneeded.keys()) if (!listed.some(node => node.nodeId === nodeId)) unneeded.delete(nodeId);
    const kept = new Map<string, string[]>();
    await atEach(listed, async ({ nodeId, protocol }) => {
      kept.set(
        nodeId,
        (await protocol.listSnapshots()).map(({ snapshotId }) => snapshotId),
      );
    });
    // Read after the lists of all machines: a snapshot in one of them was recorded before, or is too young.
    const needed = new Set(await memorySnapshotsInUse(db));
    const now = nowMs();
    await atEach(listed, async ({ nodeId, protocol }) => {
      const ids = kept.get(nodeId);
      if (!ids) return;
      const before = unneeded.get(nodeId);
      const since = ids.filter(id => !needed.has(id)).map(id => [id, before?.get(id) ?? now] as const);
      unneeded.set(nodeId, new Map(since));
      for (const [id, sinceMs] of since) if (now - sinceMs >= unneededMs) await protocol.deleteSnapshot(id);
    });
  };
}

type Listed = ReturnType<OrphanDeps['nodes']['list']>[number];
