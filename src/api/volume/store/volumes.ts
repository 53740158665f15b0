import type { Selectable } from 'kysely';
import { inTransaction, kindOf } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { lockTeam } from '../../team/store/lock.ts';
import { recordVolumeEvent } from '../../event/store/write.ts';
import { recordVolumeRemoval } from './removals.ts';
import type { VolumeTable } from '../../database/schema.ts';
import type { NewVolume, VolumeRecord } from '../record.ts';

/** A volume as its row says. */
export function volumeOfRow(row: Selectable<VolumeTable>): VolumeRecord {
  return {
    volumeId: row.volume_id,
    teamId: row.team_id,
    nodeId: row.node_id,
    name: row.name,
    sizeMiB: row.size_mib,
    createdAtUs: row.created_at_us,
    movingTo: row.moving_to,
    copy:
      row.copy_id === null || row.copied_at_us === null
        ? null
        : { copyId: row.copy_id, copiedAtUs: row.copied_at_us, changeUs: row.copied_change_us ?? 0 },
  };
}

/**
 * Writes a new volume, unless its team has one of this name, or as many as allowed already. Checks and write are one
 * transaction.
 */
export async function insertVolume(
  db: Db,
  volume: NewVolume,
  volumesMax: number,
): Promise<'inserted' | 'taken' | 'full'> {
  return inTransaction(db, async db => {
    await lockTeam(db, volume.teamId);
    const refusal = await volumeRefusal(db, volume, volumesMax);
    if (refusal) return refusal;
    await db
      .insertInto('volumes')
      .values({
        volume_id: volume.volumeId,
        team_id: volume.teamId,
        node_id: volume.nodeId,
        name: volume.name,
        size_mib: volume.sizeMiB,
        created_at_us: volume.createdAtUs,
        moving_to: null,
        replica_id: null,
        copy_id: null,
        copied_at_us: null,
        copied_change_us: null,
      })
      .execute();
    await db.deleteFrom('volume_removals').where('volume_id', '=', volume.volumeId).execute();
    await recordVolumeEvent(db, volume, { type: 'created', atUs: volume.createdAtUs });
    return 'inserted';
  });
}

/** Why a team can't have another volume of this name; undefined where it can. */
export async function volumeRefusal(
  db: Db,
  { teamId, name }: { teamId: string; name: string },
  volumesMax: number,
): Promise<'taken' | 'full' | undefined> {
  const rows = await db.selectFrom('volumes').select('name').where('team_id', '=', teamId).execute();
  if (rows.some(row => row.name === name)) return 'taken';
  return rows.length >= volumesMax ? 'full' : undefined;
}

/** The volume with this ID, or null. */
export async function findVolume(db: Db, volumeId: string): Promise<VolumeRecord | null> {
  const row = await db.selectFrom('volumes').selectAll().where('volume_id', '=', volumeId).executeTakeFirst();
  return row ? volumeOfRow(row) : null;
}

/** A team's volumes, the oldest first. */
export async function listVolumes(db: Db, teamId: string): Promise<VolumeRecord[]> {
  const rows = await db
    .selectFrom('volumes')
    .selectAll()
    .where('team_id', '=', teamId)
    .orderBy('created_at_us')
    .orderBy('volume_id')
    .execute();
  return rows.map(volumeOfRow);
}

/** How many sandboxes have each of a team's volumes; volumes without any are left out. */
export async function volumeUsers(db: Db, teamId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('sandbox_volumes')
    .innerJoin('volumes', 'volumes.volume_id', 'sandbox_volumes.volume_id')
    .select(({ fn }) => ['volumes.volume_id', fn.countAll().as('users')])
    .where('volumes.team_id', '=', teamId)
    .groupBy('volumes.volume_id')
    .execute();
  return new Map(rows.map(row => [row.volume_id, Number(row.users)]));
}

/** The IDs of all volumes whose content is on a node, or on its way there. */
export async function volumesOnNode(db: Db, nodeId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('volumes')
    .select('volume_id')
    .where(({ eb, or }) => or([eb('node_id', '=', nodeId), eb('moving_to', '=', nodeId)]))
    .execute();
  return rows.map(row => row.volume_id);
}

/**
 * Deletes a volume that no sandbox has and that is not being moved; otherwise answers the sandboxes that have it, up to
 * `shownMax`, and how many `more`. `nodeId`: where its content was, which now belongs to nobody; null where it was
 * deleted before.
 */
export async function deleteVolume(
  db: Db,
  volume: NewVolume,
  { shownMax, nowUs }: { shownMax: number; nowUs: number },
): Promise<{ deleted: true; nodeId: string | null } | { deleted: false; sandboxIds: string[]; more: number }> {
  const { volumeId } = volume;
  return inTransaction(db, async db => {
    // PostgreSQL: creates of sandboxes with it hold the row, or find it gone.
    if (kindOf(db) === 'postgres')
      await db.selectFrom('volumes').select('volume_id').where('volume_id', '=', volumeId).forUpdate().execute();
    // A sandbox may have it at several paths.
    const uses = db.selectFrom('sandbox_volumes').where('volume_id', '=', volumeId);
    const users = await uses.select('sandbox_id').distinct().orderBy('sandbox_id').limit(shownMax).execute();
    if (users.length > 0) {
      const { all } = await uses
        .select(({ fn }) => fn.count<number>('sandbox_id').distinct().as('all'))
        .executeTakeFirstOrThrow();
      return { deleted: false, sandboxIds: users.map(row => row.sandbox_id), more: Number(all) - users.length };
    }
    const gone = await db
      .deleteFrom('volumes')
      .where('volume_id', '=', volumeId)
      .where('moving_to', 'is', null)
      .returning('node_id')
      .executeTakeFirst();
    if (!gone && (await findVolume(db, volumeId))) return { deleted: false, sandboxIds: [], more: 0 };
    if (gone) {
      await recordVolumeRemoval(db, { volumeId, nodeId: gone.node_id }, nowUs);
      await recordVolumeEvent(db, volume, { type: 'deleted', atUs: nowUs });
    }
    return { deleted: true, nodeId: gone?.node_id ?? null };
  });
}

/** How many volumes are on a machine and have no copy in the store. */
export async function volumesAloneOn(db: Db, nodeId: string): Promise<number> {
  const row = await db
    .selectFrom('volumes')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('node_id', '=', nodeId)
    .where('copy_id', 'is', null)
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}
