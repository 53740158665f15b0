import type { Selectable } from 'kysely';
import { newUuid } from '../../../base/id.ts';
import type { PauseFacts } from '../../../protocol/cluster.ts';
import type { ClusterTables } from '../../database/cluster-schema.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { BlobKind, BlobOwner, BlobRecord } from '../record.ts';

/** A blob to upload. */
export type NewBlob = Pick<BlobRecord, 'blobId' | 'kind' | 'name' | 'bytes' | 'sealedKey' | 'facts'>;

/** The part of the store that is this cluster's: `made` where it had none yet. */
export async function storeIdOf(db: Db, made: string): Promise<string> {
  await db
    .insertInto('blob_store')
    .values({ place: 1, store_id: made })
    .onConflict(conflict => conflict.column('place').doNothing())
    .execute();
  const { store_id } = await db.selectFrom('blob_store').select('store_id').executeTakeFirstOrThrow();
  return store_id;
}

/** Writes the row of a blob before its first object. False: one of that name is there, or is being uploaded. */
export async function beginBlob(
  db: Db,
  { blobId, kind, name, bytes, sealedKey, facts }: NewBlob,
  { replicaId, nowUs }: { replicaId: string; nowUs: number },
): Promise<boolean> {
  const row = await db
    .insertInto('blobs')
    .values({
      blob_id: blobId,
      kind,
      name,
      state: 'uploading',
      bytes,
      sealed_key: sealedKey,
      facts_json: facts && JSON.stringify(facts),
      replica_id: replicaId,
      changed_at_us: nowUs,
    })
    // Only the name can conflict: the ID is new.
    .onConflict(conflict => conflict.doNothing())
    .returning('blob_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** `uploading` → `stored`, with its owner: from here on it is there. False: it was given up meanwhile. */
export async function finishBlob(db: Db, blobId: string, owner: BlobOwner | null, nowUs: number): Promise<boolean> {
  return inTransaction(db, async db => {
    const row = await db
      .updateTable('blobs')
      .set({ state: 'stored', replica_id: null, changed_at_us: nowUs })
      .where('blob_id', '=', blobId)
      .where('state', '=', 'uploading')
      .returning('blob_id')
      .executeTakeFirst();
    if (row && owner) await addRef(db, blobId, owner);
    return row !== undefined;
  });
}

/** Gives up an upload: what is there of it is garbage. */
export async function abandonBlob(db: Db, blobId: string, nowUs: number): Promise<void> {
  await db
    .updateTable('blobs')
    .set({ state: 'deleting', replica_id: null, changed_at_us: nowUs })
    .where('blob_id', '=', blobId)
    .where('state', '=', 'uploading')
    .execute();
}

/** The blob of that name that is there or is being uploaded, or null. */
export async function findBlob(db: Db, kind: BlobKind, name: string): Promise<BlobRecord | null> {
  const row = await db
    .selectFrom('blobs')
    .selectAll()
    .where('kind', '=', kind)
    .where('name', '=', name)
    .where('state', 'in', ['uploading', 'stored'])
    .executeTakeFirst();
  return row ? blobOfRow(row) : null;
}

/**
 * Records that somebody needs a blob. False: it is no longer there. The row is changed, so that a collection at the
 * same moment sees the change.
 */
export async function referTo(db: Db, blobId: string, owner: BlobOwner, nowUs: number): Promise<boolean> {
  return inTransaction(db, async db => {
    const row = await db
      .updateTable('blobs')
      .set({ changed_at_us: nowUs })
      .where('blob_id', '=', blobId)
      .where('state', '=', 'stored')
      .returning('blob_id')
      .executeTakeFirst();
    if (row) await addRef(db, blobId, owner);
    return row !== undefined;
  });
}

/** Records that a blob is used, which keeps it for longer. False: it is not there (any more). */
export async function touchBlob(db: Db, kind: BlobKind, name: string, nowUs: number): Promise<boolean> {
  const row = await db
    .updateTable('blobs')
    .set({ changed_at_us: nowUs })
    .where('kind', '=', kind)
    .where('name', '=', name)
    .where('state', '=', 'stored')
    .returning('blob_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** `stored` → `deleting`, even if something refers to it. */
export async function markBlob(db: Db, blobId: string, nowUs: number): Promise<void> {
  await db
    .updateTable('blobs')
    .set({ state: 'deleting', changed_at_us: nowUs })
    .where('blob_id', '=', blobId)
    .where('state', '=', 'stored')
    .execute();
}

/** The digests of the layers that are in the store. */
export async function storedLayers(db: Db): Promise<Set<string>> {
  const rows = await db
    .selectFrom('blobs')
    .select('name')
    .where('kind', '=', 'layer')
    .where('state', '=', 'stored')
    .execute();
  return new Set(rows.map(({ name }) => name));
}

/** The uploads of a team that are in the store. */
export async function uploadsOfTeam(
  db: Db,
  teamId: string,
): Promise<{ blobId: string; bytes: number; changedAtUs: number }[]> {
  const rows = await db
    .selectFrom('blobs')
    .select(['blob_id', 'bytes', 'changed_at_us'])
    .where('kind', '=', 'upload')
    .where('name', 'like', `${teamId}/%`)
    .where('state', '=', 'stored')
    .execute();
  return rows.map(row => ({ blobId: row.blob_id, bytes: Number(row.bytes), changedAtUs: Number(row.changed_at_us) }));
}

/** The executions among these that were once paused into the store, or taken back, as far as that is still known. */
export async function onceStored(db: Db, executionIds: readonly string[]): Promise<Set<string>> {
  if (executionIds.length === 0) return new Set();
  return namesOf(await pausesOf(db, executionIds).execute());
}

/**
 * Records that an execution was taken back before anybody was told of it, because the state that it started from is in
 * the store. What a machine still has of it is then known, as if the execution had been in the store itself, with no
 * bytes.
 */
export async function recordTakenBack(db: Db, executionId: string, nowUs: number): Promise<void> {
  const nothing = { bytes: 0, sealed_key: null, facts_json: null, replica_id: null };
  await db
    .insertInto('blobs')
    .values({
      ...{ blob_id: newUuid(), kind: 'pause', name: executionId, state: 'gone', changed_at_us: nowUs },
      ...nothing,
    })
    .execute();
}

/** The executions among these that were taken back, as far as that is still known. */
export async function takenBack(db: Db, executionIds: readonly string[]): Promise<Set<string>> {
  if (executionIds.length === 0) return new Set();
  return namesOf(await pausesOf(db, executionIds).where('state', '=', 'gone').where('bytes', '=', 0).execute());
}

const pausesOf = (db: Db, executionIds: readonly string[]) =>
  db.selectFrom('blobs').select('name').where('kind', '=', 'pause').where('name', 'in', executionIds);

const namesOf = (rows: readonly { name: string }[]) => new Set(rows.map(({ name }) => name));

/** Whether anything is in the store. */
export async function hasBlobs(db: Db): Promise<boolean> {
  return (
    (await db.selectFrom('blobs').select('blob_id').where('state', '=', 'stored').limit(1).executeTakeFirst()) !==
    undefined
  );
}

async function addRef(db: Db, blobId: string, owner: BlobOwner): Promise<void> {
  await db
    .insertInto('blob_refs')
    .values({ blob_id: blobId, owner_kind: owner.kind, owner_id: owner.id })
    .onConflict(conflict => conflict.columns(['blob_id', 'owner_kind', 'owner_id']).doNothing())
    .execute();
}

function blobOfRow(row: Selectable<ClusterTables['blobs']>): BlobRecord {
  return {
    blobId: row.blob_id,
    kind: row.kind,
    name: row.name,
    state: row.state,
    bytes: Number(row.bytes),
    sealedKey: row.sealed_key,
    facts: row.facts_json === null ? null : (JSON.parse(row.facts_json) as PauseFacts),
    changedAtUs: row.changed_at_us,
  };
}
