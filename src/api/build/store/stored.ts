import type { Db } from '../../database/db.ts';
import { buildOfRow } from '../../template/store/row.ts';

/** The position of a build among all builds. */
type BuildPlace = { createdAtUs: number; buildId: string };

/**
 * Some of the builds whose layers are not yet in the store of the cluster, with those layers: the oldest first, from
 * after `after`.
 */
export async function buildsToStore(
  db: Db,
  limit: number,
  after: BuildPlace,
): Promise<(BuildPlace & { layers: string[] })[]> {
  const rows = await db
    .selectFrom('builds')
    .selectAll()
    .where('status', '=', 'ready')
    .where('layers_stored', '=', 0)
    .where(({ or, and, eb }) =>
      or([
        eb('created_at_us', '>', after.createdAtUs),
        and([eb('created_at_us', '=', after.createdAtUs), eb('build_id', '>', after.buildId)]),
      ]),
    )
    .orderBy('created_at_us')
    .orderBy('build_id')
    .limit(limit)
    .execute();
  return rows
    .map(buildOfRow)
    .map(({ buildId, createdAtUs, layers, config }) => ({
      buildId,
      createdAtUs,
      layers: [...new Set([...layers, ...(config.started?.layers ?? [])])],
    }));
}

/**
 * Some of the builds whose memory is not yet in the store of the cluster, the newest first, with their snapshots and
 * the machines that have them; without these where a build has none.
 */
export async function memoriesToStore(
  db: Db,
  limit: number,
): Promise<{ buildId: string; snapshotId: string | undefined; nodeId: string | null }[]> {
  const rows = await db
    .selectFrom('builds')
    .selectAll()
    .where('status', '=', 'ready')
    .where('memory_stored', '=', 0)
    .orderBy('created_at_us', 'desc')
    .limit(limit)
    .execute();
  return rows.map(row => {
    const { memorySnapshotId, memoryNodeId, started } = buildOfRow(row).config;
    const nodeId = memorySnapshotId === undefined ? row.node_id : (memoryNodeId ?? null);
    return { buildId: row.build_id, snapshotId: memorySnapshotId ?? started?.snapshotId, nodeId };
  });
}

/** Records that no memory of a build is left to store. */
export async function recordMemoryStored(db: Db, buildId: string): Promise<void> {
  await db.updateTable('builds').set({ memory_stored: 1 }).where('build_id', '=', buildId).execute();
}

/** Records that the layers of a build are in the store. */
export async function recordLayersStored(db: Db, buildId: string): Promise<void> {
  await db.updateTable('builds').set({ layers_stored: 1 }).where('build_id', '=', buildId).execute();
}
