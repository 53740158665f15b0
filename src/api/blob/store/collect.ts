import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import { isNobodyElses } from '../../replica/store/replicas.ts';
import type { BlobKind } from '../record.ts';

/** Removes references of builds and executions that no longer exist, and of copies that are not the newest. */
export async function dropLooseRefs(db: Db): Promise<void> {
  await dropOfBuilds(db, {});
  await dropOfExecutions(db, {});
  await dropOfVolumes(db, {});
}

const dropOfBuilds = prepared(db =>
  db
    .deleteFrom('blob_refs')
    .where('owner_kind', '=', 'build')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(selectFrom('builds').select('builds.build_id').whereRef('builds.build_id', '=', 'blob_refs.owner_id')),
      ),
    ),
);
const dropOfExecutions = prepared(db =>
  db
    .deleteFrom('blob_refs')
    .where('owner_kind', '=', 'execution')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('sandboxes')
            .select('sandboxes.sandbox_id')
            .whereRef('sandboxes.execution_id', '=', 'blob_refs.owner_id'),
        ),
      ),
    ),
);
const dropOfVolumes = prepared(db =>
  db
    .deleteFrom('blob_refs')
    .where('owner_kind', '=', 'volume')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('volumes').select('volumes.volume_id').whereRef('volumes.copy_id', '=', 'blob_refs.owner_id'),
        ),
      ),
    ),
);

/**
 * `stored` → `deleting` for blobs without references that have not changed since `beforeUs`. On PostgreSQL, a reference
 * made at the same moment has changed the row, and the condition on its time is checked again.
 */
export async function markUnusedBlobs(
  db: Db,
  kind: BlobKind,
  { beforeUs, nowUs }: { beforeUs: number; nowUs: number },
): Promise<void> {
  await markUnused(db, { kind, beforeUs, nowUs });
}

const markUnused = prepared<{ kind: BlobKind; beforeUs: number; nowUs: number }>((db, parameter) =>
  db
    .updateTable('blobs')
    .set({ state: 'deleting', changed_at_us: parameter('nowUs') })
    .where('kind', '=', parameter('kind'))
    .where('state', '=', 'stored')
    .where('changed_at_us', '<', parameter('beforeUs'))
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('blob_refs').select('owner_id').whereRef('blob_refs.blob_id', '=', 'blobs.blob_id'))),
    ),
);

/** `uploading` → `deleting` for blobs of processes that are gone. */
export async function markLeftUploads(db: Db, replica: { ownId: string; nowUs: number }): Promise<void> {
  await markLeft(db, replica);
}

const markLeft = prepared<{ ownId: string; nowUs: number }>((db, parameter) =>
  db
    .updateTable('blobs')
    .set({ state: 'deleting', replica_id: null, changed_at_us: parameter('nowUs') })
    .where('state', '=', 'uploading')
    .where('replica_id', '!=', parameter('ownId'))
    .where(where => isNobodyElses(where, 'blobs', { ownId: parameter('ownId'), nowUs: parameter('nowUs') })),
);

/** The blobs that a process uploads, by their rows. */
export async function uploadsOf(db: Db, replicaId: string): Promise<string[]> {
  return (await uploads(db, { replicaId })).map(row => row.blob_id);
}

const uploads = prepared<{ replicaId: string }, { blob_id: string }>((db, parameter) =>
  db
    .selectFrom('blobs')
    .select('blob_id')
    .where('state', '=', 'uploading')
    .where('replica_id', '=', parameter('replicaId')),
);

/** Some of the blobs whose objects must be deleted, the oldest first. */
export async function blobsToDelete(db: Db, limit: number): Promise<{ blobId: string; bytes: number }[]> {
  const rows = await toDelete(db, { limit });
  return rows.map(row => ({ blobId: row.blob_id, bytes: Number(row.bytes) }));
}

const toDelete = prepared<{ limit: number }, { blob_id: string; bytes: number }>((db, parameter) =>
  db
    .selectFrom('blobs')
    .select(['blob_id', 'bytes'])
    .where('state', '=', 'deleting')
    .orderBy('changed_at_us')
    .limit(parameter('limit')),
);

/** Forgets a blob whose objects are gone; the record that a pause was there stays for a while. */
export async function removeBlob(db: Db, blobId: string, nowUs: number): Promise<void> {
  await db.deleteFrom('blob_refs').where('blob_id', '=', blobId).execute();
  await db
    .updateTable('blobs')
    .set({ state: 'gone', changed_at_us: nowUs })
    .where('blob_id', '=', blobId)
    .where('kind', '=', 'pause')
    .where('state', '=', 'deleting')
    .execute();
  await db.deleteFrom('blobs').where('blob_id', '=', blobId).where('state', '=', 'deleting').execute();
}

/** Forgets pauses that have been gone since `beforeUs`. */
export async function pruneGone(db: Db, beforeUs: number): Promise<void> {
  await prune(db, { beforeUs });
}

const prune = prepared<{ beforeUs: number }>((db, parameter) =>
  db.deleteFrom('blobs').where('state', '=', 'gone').where('changed_at_us', '<', parameter('beforeUs')),
);

/** The blobs among these that have objects, or may have some. */
export async function knownBlobs(db: Db, blobIds: readonly string[]): Promise<Set<string>> {
  if (blobIds.length === 0) return new Set();
  const rows = await db
    .selectFrom('blobs')
    .select('blob_id')
    .where('blob_id', 'in', blobIds)
    .where('state', '!=', 'gone')
    .execute();
  return new Set(rows.map(row => row.blob_id));
}
