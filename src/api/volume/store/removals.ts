import type { Db } from '../../database/db.ts';
import type { VolumeRecord } from '../record.ts';

/** Notes that the content of a volume is nobody's: until it has a row, or after it had one. */
export async function noteVolumeRemoval(
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

/** Takes the note away that the content of a volume is to go. */
export async function forgetVolumeRemoval(db: Db, volumeId: string): Promise<void> {
  await db.deleteFrom('volume_removals').where('volume_id', '=', volumeId).execute();
}

/** Volumes of a node whose content is to be removed, with when that was noted. */
export async function volumeRemovalsOn(db: Db, nodeId: string): Promise<{ volumeId: string; notedAtUs: number }[]> {
  const rows = await db.selectFrom('volume_removals').selectAll().where('node_id', '=', nodeId).execute();
  return rows.map(row => ({ volumeId: row.volume_id, notedAtUs: row.noted_at_us }));
}
