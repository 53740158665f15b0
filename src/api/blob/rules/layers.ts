import { AtollError } from '../../../base/error.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Machine } from '../../../protocol/cluster.ts';
import type { Db } from '../../database/db.ts';
import type { BlobOwner } from '../record.ts';
import { findBlob, referTo } from '../store/blobs.ts';
import type { ClusterStore } from './cluster-store.ts';

/** Interval at which a layer that another process uploads is checked again, milliseconds. */
const uploadPollMs = 500;
const uploadWaitMs = 20 * 60_000;

/** What it takes to keep layers. */
export type LayerDeps = { db: Db; clock: Clock; store: ClusterStore };

/** Brings a layer from the store to a machine. False: it is not in the store. Errors: those of `ClusterStore.bring`. */
export async function bringLayer(
  { db, store }: Pick<LayerDeps, 'db' | 'store'>,
  digest: string,
  { layers, transfers }: Pick<Machine, 'layers' | 'transfers'>,
): Promise<boolean> {
  const blob = await findBlob(db, 'layer', digest);
  if (blob?.state !== 'stored') return false;
  await store.bring(blob, {
    receive: urls => transfers.receiveLayer(digest, blob.bytes, urls),
    open: () => layers.openWrite(digest, blob.bytes),
    keep: writeId => layers.keepWrite(writeId, blob.bytes),
    drop: writeId => layers.dropWrite(writeId),
  });
  return true;
}

/**
 * Makes sure that a layer is in the store and stays for its owner; `holder` has the layer. Errors: those of
 * `ClusterStore.put`.
 */
export async function storeLayer(
  { db, clock, store }: LayerDeps,
  digest: string,
  owner: BlobOwner,
  holder: () => Promise<Pick<Machine, 'layers' | 'transfers'>>,
): Promise<void> {
  for (const deadline = performance.now() + uploadWaitMs; ;) {
    const blob = await findBlob(db, 'layer', digest);
    if (blob?.state === 'stored' && (await referTo(db, blob.blobId, owner, clock()))) return;
    if (!blob) {
      const { layers, transfers } = await holder();
      const outgoing = {
        sizeBytes: await layers.bytes(digest),
        send: (urls: string[]) => transfers.sendLayer(digest, urls),
        open: () => layers.openRead(digest),
      };
      const made = await store.put({ kind: 'layer', name: digest, sealedKey: null, facts: null }, outgoing, owner);
      if (made) return;
    }
    if (performance.now() > deadline)
      throw new AtollError('unavailable', `The layer ${digest} has been on its way to the store for too long`);
    await Bun.sleep(uploadPollMs);
  }
}
