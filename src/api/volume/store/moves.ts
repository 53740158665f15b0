import { inTransaction, kindOf } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { isNobodyElses } from '../../replica/store/replicas.ts';
import type { VolumeRecord } from '../record.ts';
import { volumeOfRow } from './volumes.ts';

/** The process that works on a volume, and the time by which others count as alive. */
type Replica = { ownId: string; nowUs: number };

/** Why a volume can't move to another machine now. */
export type MoveRefusal = 'gone' | 'busy' | 'in_use' | 'left_over';

/**
 * Takes a volume that no sandbox has for a move to another machine: from then on nobody uses it. Until `finishMove`,
 * the content there belongs to nobody.
 */
export async function beginMove(
  db: Db,
  { volumeId, nodeId }: Pick<VolumeRecord, 'volumeId' | 'nodeId'>,
  nextNodeId: string,
  replica: Replica,
): Promise<'begun' | MoveRefusal> {
  return inTransaction(db, async db => {
    // Creates of sandboxes with it hold the row, or find it taken.
    const query = db.selectFrom('volumes').selectAll().where('volume_id', '=', volumeId);
    const row = await (kindOf(db) === 'postgres' ? query.forUpdate() : query).executeTakeFirst();
    if (!row || row.node_id !== nodeId) return 'gone';
    const user = await db
      .selectFrom('sandbox_volumes')
      .select('sandbox_id')
      .where('volume_id', '=', volumeId)
      .limit(1)
      .executeTakeFirst();
    if (user) return 'in_use';
    const leftOver = await db
      .selectFrom('volume_removals')
      .select('node_id')
      .where('volume_id', '=', volumeId)
      .executeTakeFirst();
    if (leftOver) return 'left_over';
    const taken = await db
      .updateTable('volumes')
      .set({ moving_to: nextNodeId, replica_id: replica.ownId })
      .where('volume_id', '=', volumeId)
      .where('moving_to', 'is', null)
      .where(expressions => isNobodyElses(expressions, 'volumes', replica))
      .returning('volume_id')
      .executeTakeFirst();
    if (!taken) return 'busy';
    await db
      .insertInto('volume_removals')
      .values({ volume_id: volumeId, node_id: nextNodeId, noted_at_us: replica.nowUs })
      .execute();
    return 'begun';
  });
}

/**
 * The content is on the other machine: what the first one has belongs to nobody. False: somebody else has settled it.
 */
export async function finishMove(
  db: Db,
  { volumeId, nodeId }: Pick<VolumeRecord, 'volumeId' | 'nodeId'>,
  nextNodeId: string,
  { ownId, nowUs }: Replica,
): Promise<boolean> {
  return inTransaction(db, async db => {
    const row = await db
      .updateTable('volumes')
      .set({ node_id: nextNodeId, moving_to: null, replica_id: null })
      .where('volume_id', '=', volumeId)
      .where('moving_to', '=', nextNodeId)
      .where('replica_id', '=', ownId)
      .returning('volume_id')
      .executeTakeFirst();
    if (!row) return false;
    await db.deleteFrom('volume_removals').where('volume_id', '=', volumeId).execute();
    await db
      .insertInto('volume_removals')
      .values({ volume_id: volumeId, node_id: nodeId, noted_at_us: nowUs })
      .execute();
    return true;
  });
}

/** Takes a volume for a copy. False: another process works on it, or it is being moved. */
export async function beginCopy(db: Db, volumeId: string, replica: Replica): Promise<boolean> {
  const row = await db
    .updateTable('volumes')
    .set({ replica_id: replica.ownId })
    .where('volume_id', '=', volumeId)
    .where('moving_to', 'is', null)
    .where(expressions => isNobodyElses(expressions, 'volumes', replica))
    .returning('volume_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Releases a volume that this process worked on: it is where it was. */
export async function letGo(db: Db, volumeId: string, ownId: string): Promise<void> {
  await db
    .updateTable('volumes')
    .set({ moving_to: null, replica_id: null })
    .where('volume_id', '=', volumeId)
    .where('replica_id', '=', ownId)
    .execute();
}

/** The newest copy is a stored blob, which stays for the volume from now on. False: the blob or the volume is gone. */
export async function recordCopy(
  db: Db,
  volumeId: string,
  copy: { copyId: string; copiedAtUs: number; changeUs: number },
  nowUs: number,
): Promise<boolean> {
  return inTransaction(db, async db => {
    const blob = await db
      .updateTable('blobs')
      .set({ changed_at_us: nowUs })
      .where('kind', '=', 'volume')
      .where('name', '=', copy.copyId)
      .where('state', '=', 'stored')
      .returning('blob_id')
      .executeTakeFirst();
    if (!blob) return false;
    const volume = await db
      .updateTable('volumes')
      .set({ copy_id: copy.copyId, copied_at_us: copy.copiedAtUs, copied_change_us: copy.changeUs })
      .where('volume_id', '=', volumeId)
      .returning('volume_id')
      .executeTakeFirst();
    if (!volume) return false;
    await db
      .insertInto('blob_refs')
      .values({ blob_id: blob.blob_id, owner_kind: 'volume', owner_id: copy.copyId })
      .execute();
    return true;
  });
}

/** The volumes that processes have left half done: processes that are over, and this one. */
export async function volumesLeft(db: Db, replica: Replica): Promise<VolumeRecord[]> {
  const rows = await db
    .selectFrom('volumes')
    .selectAll()
    .where('replica_id', 'is not', null)
    .where(expressions => isNobodyElses(expressions, 'volumes', replica))
    .execute();
  return rows.map(volumeOfRow);
}

/** Takes over what another process has left. False: somebody else has. */
export async function takeOverVolume(db: Db, volumeId: string, replica: Replica): Promise<boolean> {
  const row = await db
    .updateTable('volumes')
    .set({ replica_id: replica.ownId })
    .where('volume_id', '=', volumeId)
    .where('replica_id', 'is not', null)
    .where(expressions => isNobodyElses(expressions, 'volumes', replica))
    .returning('volume_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** A volume, and some of the sandboxes, running or paused, that have it. */
type UsedVolume = { volume: VolumeRecord; users: string[] };

/** Sandboxes named for each volume. */
const usersShownMax = 5;

/** The volumes of all machines, or of one. */
export async function usedVolumes(db: Db, nodeId?: string): Promise<UsedVolume[]> {
  let all = db.selectFrom('volumes').selectAll().orderBy('volume_id');
  let used = db
    .selectFrom('sandbox_volumes')
    .innerJoin('volumes', 'volumes.volume_id', 'sandbox_volumes.volume_id')
    .select(['sandbox_volumes.volume_id', 'sandbox_volumes.sandbox_id']);
  if (nodeId !== undefined) {
    all = all.where('node_id', '=', nodeId);
    used = used.where('volumes.node_id', '=', nodeId);
  }
  const [rows, uses] = [await all.execute(), await used.execute()];
  const users = Map.groupBy(uses, use => use.volume_id);
  return rows.map(row => ({
    volume: volumeOfRow(row),
    users: (users.get(row.volume_id) ?? []).slice(0, usersShownMax).map(use => use.sandbox_id),
  }));
}
