import { AtollError, messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { memoriesToStore, recordMemoryStored } from '../../build/store/stored.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { isNodeLost } from '../../cluster/store/nodes.ts';
import type { Db } from '../../database/db.ts';
import type { DurableSnapshots } from '../rules/snapshots.ts';

/** How often this runs, milliseconds: until then the memory of a new snapshot is on one machine alone. */
export const memoryUploadIntervalMs = 5_000;
/** Builds checked in one round. */
const buildsMax = 100;

/** Puts the memory of snapshots, and of templates' servers, into the store. */
export async function storeMemories({
  db,
  log,
  machines,
  durableSnapshots,
}: {
  db: Db;
  log: Log;
  machines: Machines;
  durableSnapshots: DurableSnapshots;
}): Promise<void> {
  if (!durableSnapshots.isUsable) return;
  for (const { buildId, snapshotId, nodeId } of await memoriesToStore(db, buildsMax)) {
    if (snapshotId !== undefined && nodeId !== null) {
      const isInReach = machines.usable().some(({ node }) => node.nodeId === nodeId);
      if (!isInReach && !(await isNodeLost(db, nodeId))) continue;
      try {
        if (isInReach) await durableSnapshots.store(snapshotId, nodeId, { kind: 'build', id: buildId });
      } catch (error) {
        // What its machine lacks is nowhere.
        const isGone = error instanceof AtollError && error.code === 'not_found';
        if (!isGone) {
          log.warn('the memory of a build is not in the store yet', { buildId, error: messageOf(error) });
          continue;
        }
      }
    }
    await recordMemoryStored(db, buildId);
  }
}
