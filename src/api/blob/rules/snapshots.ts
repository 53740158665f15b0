import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import { AtollError } from '../../../base/error.ts';
import type { PauseFacts } from '../../../protocol/cluster.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import type { Db } from '../../database/db.ts';
import type { BlobOwner } from '../record.ts';
import { findBlob, referTo } from '../store/blobs.ts';
import type { LayerDeps } from './layers.ts';
import { newCarryKey } from './write-to-machine.ts';

/** What it takes to store the memory of snapshots. */
type Deps = LayerDeps & { db: Db; machines: Machines; seed: Uint8Array };

const keyPurpose = 'snapshots in the store';

/**
 * Memory with which new sandboxes start, of snapshots, forks and templates' servers, in the store: any machine that it
 * fits gets it from there at its first use. Each has a key of its own, which the seed encrypts in the database.
 */
export class DurableSnapshots {
  readonly #deps: Deps;
  readonly #coming = new SingleFlight<string, void>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Whether the store is usable, as far as is known. */
  get isUsable(): boolean {
    return this.#deps.store.isUsable;
  }

  /**
   * Stores the memory of a snapshot. It stays for its owner or, without one, for a while. Errors: those of
   * `ClusterStore.put`, `not_found` where the machine does not have it, `conflict` while another process stores it.
   */
  async store(snapshotId: string, nodeId: string, owner: BlobOwner | null): Promise<void> {
    const { db, clock, store, machines, seed } = this.#deps;
    const known = await findBlob(db, 'snapshot', snapshotId);
    if (known?.state === 'stored' && owner && (await referTo(db, known.blobId, owner, clock()))) return;
    const { snapshots, transfers } = machines.known(nodeId).machine;
    const facts = await snapshots.describe(snapshotId);
    const key = newCarryKey();
    const sealedKey = encrypt(encryptionKey(seed, keyPurpose), key, snapshotId);
    const outgoing = {
      sizeBytes: facts.sizeBytes,
      send: (urls: string[]) => transfers.sendSnapshot(snapshotId, key, urls),
      open: () => snapshots.openRead(snapshotId, key),
    };
    if (!(await store.put({ kind: 'snapshot', name: snapshotId, sealedKey, facts }, outgoing, owner)))
      throw new AtollError('conflict', 'The memory is being stored already: ask again');
  }

  /** What the memory of a snapshot needs of a machine; null where it is not in the store. */
  async facts(snapshotId: string): Promise<PauseFacts | null> {
    const blob = await findBlob(this.#deps.db, 'snapshot', snapshotId);
    return blob?.state === 'stored' ? blob.facts : null;
  }

  /**
   * Makes sure that a machine has the memory of a snapshot. Errors: `not_found` where it is neither there nor in the
   * store; those of the store and of the machine.
   */
  bring(snapshotId: string, nodeId: string): Promise<void> {
    return this.#coming.run(`${nodeId} ${snapshotId}`, () => this.#bring(snapshotId, nodeId));
  }

  async #bring(snapshotId: string, nodeId: string): Promise<void> {
    const { db, store, machines, seed } = this.#deps;
    const { node, snapshots, transfers } = machines.known(nodeId).machine;
    if ((await node.listSnapshots()).some(known => known.snapshotId === snapshotId)) return;
    const blob = await findBlob(db, 'snapshot', snapshotId);
    if (blob?.state !== 'stored' || blob.sealedKey === null)
      throw new AtollError('not_found', 'The memory that the sandbox begins with is not in the store');
    const key = decrypt(encryptionKey(seed, keyPurpose), blob.sealedKey, snapshotId);
    const { bytes } = blob;
    await store.bring(blob, {
      receive: urls => transfers.receiveSnapshot(snapshotId, key, bytes, urls),
      open: () => snapshots.openWrite(snapshotId, key, bytes),
      keep: writeId => snapshots.keepWrite(writeId),
      drop: writeId => snapshots.dropWrite(writeId),
    });
  }
}
