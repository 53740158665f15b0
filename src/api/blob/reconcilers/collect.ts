import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { isSuspect } from '../../database/timeline.ts';
import { sandboxLogDays } from '../../../protocol/logs.ts';
import type { Db } from '../../database/db.ts';
import { type BlobKind, blobKinds } from '../record.ts';
import { abandonBlob } from '../store/blobs.ts';
import type { ClusterStore } from '../rules/cluster-store.ts';
import {
  blobsToDelete,
  markUnusedBlobs,
  markLeftUploads,
  dropLooseRefs,
  knownBlobs,
  pruneGone,
  removeBlob,
  uploadsOf,
} from '../store/collect.ts';

/** How often this runs, milliseconds. */
export const collectIntervalMs = 30_000;
/** How often all objects of the store are listed, milliseconds. */
const sweepIntervalMs = 6 * 3_600_000;
/**
 * For how long what nobody needs stays, seconds: a layer may be wanted again, a pause that was resumed may not, and an
 * upload is built with for as long as a project changes elsewhere.
 */
const defaultGraceSeconds: Record<BlobKind, number> = {
  layer: 24 * 3600,
  pause: 15 * 60,
  // Nobody refers to that of a fork.
  snapshot: 15 * 60,
  upload: 7 * 24 * 3600,
  // For as long as machines keep them.
  log: sandboxLogDays * 24 * 3600,
  // An older copy than the newest.
  volume: 15 * 60,
};
/** For how long an object without a row stays, seconds: longer than any upload takes. */
const defaultOrphanSeconds = 48 * 3600;
/** For how long it is known of a pause that it was there, seconds: a machine that is away for longer is a rare one. */
const goneSeconds = 30 * 24 * 3600;
const deletionsMax = 100;
const lookedUpAtOnce = 200;

/** Dependencies of collecting. */
type CollectDeps = { clock: Clock; db: Db; log: Log; busy: { replicaId: string }; store: ClusterStore };

/** Gives up uploads that nobody is at work on: until then nobody else can put what has their name. */
export async function giveUpUploads({ clock, db, busy, store }: Omit<CollectDeps, 'log'>): Promise<void> {
  const nowUs = clock();
  await markLeftUploads(db, { ownId: busy.replicaId, nowUs });
  // Its own that failed while the database was away, too: the rows first, as one that begins after is none of them.
  for (const blobId of await uploadsOf(db, busy.replicaId))
    if (!store.isSending(blobId)) await abandonBlob(db, blobId, nowUs);
}

/**
 * Deletes what nobody refers to any more. Each step is one that may be repeated: rows go `deleting` first, then
 * their objects, then the rows.
 */
export async function collectBlobs(
  { clock, db, log, store }: Omit<CollectDeps, 'busy'>,
  graceSeconds: Readonly<Record<BlobKind, number>> = defaultGraceSeconds,
): Promise<void> {
  const nowUs = clock();
  await dropLooseRefs(db);
  for (const kind of blobKinds)
    await markUnusedBlobs(db, kind, { beforeUs: nowUs - graceSeconds[kind] * microsPerSecond, nowUs });
  const deleted = await blobsToDelete(db, deletionsMax);
  for (const blob of deleted) {
    await store.delete(blob);
    await removeBlob(db, blob.blobId, nowUs);
  }
  await pruneGone(db, nowUs - goneSeconds * microsPerSecond);
  if (deleted.length > 0) log.info('what nobody needs was deleted from the store', { blobs: deleted.length });
}

/** Deletes objects that have had no row for long: of uploads that were cut off, or that arrived too late. */
export async function sweepObjects(
  { db, log, store }: Pick<CollectDeps, 'db' | 'log' | 'store'>,
  orphanSeconds = defaultOrphanSeconds,
): Promise<void> {
  const beforeMs = Date.now() - orphanSeconds * 1000;
  let waiting: { key: string; blobId: string }[] = [];
  let removed = 0;
  const remove = async () => {
    const known = await knownBlobs(db, [...new Set(waiting.map(({ blobId }) => blobId))]);
    for (const { key, blobId } of waiting)
      if (!known.has(blobId)) {
        await store.deleteObject(key);
        removed++;
      }
    waiting = [];
  };
  for await (const { key, blobId, changedAtMs } of store.objects()) {
    if (changedAtMs < beforeMs) waiting.push({ key, blobId });
    if (waiting.length >= lookedUpAtOnce) await remove();
  }
  await remove();
  if (removed > 0) log.info('objects that belonged to nothing were deleted from the store', { objects: removed });
}

/** Looks after the store: whether it can be used, and that it holds what is needed and little more. */
export function storeKeeping(deps: CollectDeps): () => Promise<void> {
  let sweptAtMs = performance.now();
  return async () => {
    await deps.store.examine();
    // Deletes nothing: also while the store is away, and after the database went over to another server, which is when
    // uploads fail.
    await giveUpUploads(deps);
    if (!deps.store.isUsable) return;
    // A database that lacks rows would have their objects deleted.
    if (await isSuspect(deps.db, deps.clock())) return;
    await collectBlobs(deps);
    if (performance.now() - sweptAtMs < sweepIntervalMs) return;
    sweptAtMs = performance.now();
    await sweepObjects(deps);
  };
}
