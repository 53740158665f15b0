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
 * How long unneeded blobs stay, seconds: a layer may be wanted again, a pause that was resumed may not, and builds use
 * an upload as long as a project changes elsewhere.
 */
const defaultGraceSeconds: Record<BlobKind, number> = {
  layer: 24 * 3600,
  pause: 15 * 60,
  // Nothing refers to a fork's snapshot.
  snapshot: 15 * 60,
  upload: 7 * 24 * 3600,
  // As long as machines keep logs.
  log: sandboxLogDays * 24 * 3600,
  // An older copy than the newest one.
  volume: 15 * 60,
};
/** How long an object without a row stays, seconds: longer than any upload takes. */
const defaultOrphanSeconds = 48 * 3600;
/** How long the record that a pause was there stays, seconds: few machines are away for longer. */
const goneSeconds = 30 * 24 * 3600;
const deletionsMax = 100;
const lookedUpAtOnce = 200;

/** Dependencies of the collector. */
type CollectDeps = { clock: Clock; db: Db; log: Log; busy: { replicaId: string }; store: ClusterStore };

/** Gives up uploads that nobody works on: until then nobody else can upload under their names. */
export async function giveUpUploads({ clock, db, busy, store }: Omit<CollectDeps, 'log'>): Promise<void> {
  const nowUs = clock();
  await markLeftUploads(db, { ownId: busy.replicaId, nowUs });
  // Also those of this process that failed while the database was away. The rows are read first, so that uploads that
  // begin later are not among them.
  for (const blobId of await uploadsOf(db, busy.replicaId))
    if (!store.isSending(blobId)) await abandonBlob(db, blobId, nowUs);
}

/**
 * Deletes what nothing refers to any more. Each step can be repeated: rows become `deleting` first, then the objects
 * go, then the rows.
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

/** Looks after the store: checks that it can be used, and that it holds what is needed and little more. */
export function storeKeeping(deps: CollectDeps): () => Promise<void> {
  let sweptAtMs = performance.now();
  return async () => {
    await deps.store.examine();
    // This deletes nothing, so it runs even while the store is away, and after the database failed over to another
    // server, which is when uploads fail.
    await giveUpUploads(deps);
    if (!deps.store.isUsable) return;
    // A database that lacks rows would cause their objects to be deleted.
    if (await isSuspect(deps.db, deps.clock())) return;
    await collectBlobs(deps);
    if (performance.now() - sweptAtMs < sweepIntervalMs) return;
    sweptAtMs = performance.now();
    await sweepObjects(deps);
  };
}
