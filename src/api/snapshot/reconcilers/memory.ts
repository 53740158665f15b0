import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
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

const nodesAtOnce = 8;

/** Dependencies of deleting what nothing needs. */
type KeepingDeps = OrphanDeps & { log: Log };

/**
 * Deletes the memory of snapshots that nothing can be made from any more, and of those that a crash cut off: what was
 * unneeded in a round, and still is in one that much later. When a machine says that it was taken is by its own clock,
 * which may be wrong, and says nothing. A machine that does not answer has its turn in a later round. `nowMs`: a clock
 * that nobody can set.
 */
export function snapshotKeeping(
  { clock, db, nodes, log }: KeepingDeps,
  nowMs: () => number = () => performance.now(),
): () => Promise<void> {
  /** Since when each node's snapshots are known to be unneeded. */
  const unneeded = new Map<string, ReadonlyMap<string, number>>();
  /** Each machine by itself. */
  const atEach = (listed: readonly Listed[], work: (node: Listed) => Promise<void>) =>
    forEachParallel(listed, nodesAtOnce, node =>
      work(node).catch((error: unknown) =>
        log.warn('memory that nothing needs is looked for again', { nodeId: node.nodeId, error: messageOf(error) }),
      ),
    );
  return async () => {
    // What is unneeded before may be needed by what is known afterwards.
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
    // After the lists of all: what one of them has was recorded before, or is too young.
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
