import type { Db } from '../../database/db.ts';
import type { VolumeRecord } from '../record.ts';

/** Records that the content of a volume belongs to nobody: before it gets a row, or after it had one. */
export async function recordVolumeRemoval(
  db: Db,
  { volumeId, nodeId }: Pick<VolumeRecord, 'volumeId' | 'nodeId'>,
  nowUs: number,
): Promise<void> {
  await db
    .insertInto('volume_removals')
    .values({ volume_id: volumeId, node_id: nodeId, noted_at_us: nowUs })
    .onConflict(conflict => conflict.column('volume_id').doNothing())
    .execute();
}

/**
 * The same, where another machine may have remains of it too: one removal happens by itself, and the other is listed
 * among the orphans.
 */
export async function recordVolumeRemovalHere(
  db: Db,
  { volumeId, nodeId }: Pick<VolumeRecord, 'volumeId' | 'nodeId'>,
  nowUs: number,
): Promise<void> {
  const noted = { node_id: nodeId, noted_at_us: nowUs };
  await db
    .insertInto('volume_removals')
    .values({ volume_id: volumeId, ...noted })
    .onConflict(conflict => conflict.column('volume_id').doUpdateSet(noted))
    .execute();
}

/** Forgets that the content of a volume must be removed from a machine. Another one may still have remains of it. */
export async function forgetVolumeRemoval(
  db: Db,
  { volumeId, nodeId }: Pick<VolumeRecord, 'volumeId' | 'nodeId'>,
): Promise<void> {
  await db.deleteFrom('volume_removals').where('volume_id', '=', volumeId).where('node_id', '=', nodeId).execute();
}

/** Forgets the remains of volumes on a machine that never comes back. */
export async function forgetVolumeRemovalsOn(db: Db, nodeId: string): Promise<void> {
  await db.deleteFrom('volume_removals').where('node_id', '=', nodeId).execute();
}

/** Volumes of a node whose content must be removed, and when that was recorded. */
export async function volumeRemovalsOn(db: Db, nodeId: string): Promise<{ volumeId: string; recordedAtUs: number }[]> {
  const rows = await db.selectFrom('volume_removals').selectAll().where('node_id', '=', nodeId).execute();
  return rows.map(row => ({ volumeId: row.volume_id, recordedAtUs: row.noted_at_us }));
}
