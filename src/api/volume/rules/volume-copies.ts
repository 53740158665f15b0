import type { Clock } from '../../../base/clock.ts';
import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { AtollError, messageOf } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { VolumeState } from '../../../protocol/cluster.ts';
import { findBlob } from '../../blob/store/blobs.ts';
import type { ClusterStore } from '../../blob/rules/cluster-store.ts';
import { carryBetween, newCarryKey } from '../../blob/rules/write-to-machine.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import type { Db } from '../../database/db.ts';
import type { VolumeRecord } from '../record.ts';
import {
  beginCopy,
  beginMove,
  finishMove,
  letGo,
  type MoveRefusal,
  recordCopy,
  takeOverVolume,
  volumesLeft,
} from '../store/moves.ts';
import { forgetVolumeRemoval } from '../store/removals.ts';
import { findVolume } from '../store/volumes.ts';
import { changeOf } from './copy-due.ts';

/** What carrying volumes needs. */
type Deps = {
  db: Db;
  clock: Clock;
  log: Log;
  machines: Machines;
  /** Null: volumes have no copies. */
  store: ClusterStore | null;
  seed: Uint8Array;
  busy: { replicaId: string };
};

const keyPurpose = 'volumes in the store';

/** The steps that bring the content of a volume to another machine; `release` is always the last one. */
type Relocation = { bring(): Promise<void>; check(): Promise<void>; moved(): Promise<void>; release(): Promise<void> };

/**
 * Moves the volumes of a cluster between its machines, and keeps their copies in its store. Each copy is encrypted with
 * a key of its own, which the seed encrypts in the database.
 */
export class VolumeCopies {
  readonly #deps: Deps;
  readonly #underWay = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Whether there is a store for copies, usable now or not. */
  get haveStore(): boolean {
    return this.#deps.store !== null;
  }

  /** Whether copies can be made, as far as is known. */
  get areStored(): boolean {
    return this.#deps.store?.isUsable ?? false;
  }

  /** Whether this process works on a volume. */
  isBusy(volumeId: string): boolean {
    return this.#underWay.has(volumeId);
  }

  /**
   * Puts a copy of a volume's present content into the store. Errors: those of `ClusterStore.put` and
   * `VolumeExchange.fix`, `conflict` while somebody else works on it.
   */
  async copy(volume: VolumeRecord, state: VolumeState): Promise<void> {
    const { db, clock, store, machines, seed } = this.#deps;
    const { volumeId, nodeId } = volume;
    if (!store) throw noStore();
    await this.#alone(volumeId, async () => {
      if (!(await beginCopy(db, volumeId, this.#replica()))) throw worked(volume.name);
      const { volumeCopies, transfers } = machines.known(nodeId).machine;
      const copyId = newUuid();
      const copiedAtUs = clock();
      const { fixedId, sizeBytes } = await volumeCopies.fix(volumeId, 'copy');
      try {
        const key = newCarryKey();
        const sealedKey = encrypt(encryptionKey(seed, keyPurpose), key, copyId);
        const outgoing = {
          sizeBytes,
          send: (urls: string[]) => transfers.sendVolume(fixedId, key, urls),
          open: () => volumeCopies.openRead(fixedId, key),
        };
        await store.put({ kind: 'volume', name: copyId, sealedKey, facts: null }, outgoing, null);
      } finally {
        await volumeCopies.release(fixedId).catch(() => {}); // it expires by itself
      }
      await recordCopy(db, volumeId, { copyId, copiedAtUs, changeUs: changeOf(state) }, clock());
    });
  }

  /**
   * Moves a volume that no sandbox has to another machine. Errors: `conflict` (it is in use, or the leftovers of an
   * earlier move must go first), those of both machines. After an error it is where it was.
   */
  async move(volume: VolumeRecord, nextNodeId: string): Promise<void> {
    const { machines } = this.#deps;
    const { volumeId, nodeId } = volume;
    const from = machines.known(nodeId).machine.volumeCopies;
    const to = machines.known(nextNodeId).machine.volumeCopies;
    await this.#relocate(volume, nextNodeId, async () => {
      const { fixedId, sizeBytes } = await from.fix(volumeId, 'seal');
      return {
        bring: () => carryBetween(machines.carried, key => from.openRead(fixedId, key), to, volumeId, sizeBytes),
        // A node that restarted meanwhile may have let somebody write.
        check: () => from.requireFixed(fixedId),
        // It stays sealed until it is gone: a late request finds nothing, and does not write to the remains.
        moved: () => this.#removeLeft(volumeId, nodeId),
        release: () => from.release(fixedId),
      };
    });
  }

  /**
   * Restores a volume from its copy in the store on another machine. Remains on its own machine are removed when that
   * is back. Errors: `precondition` (there is no copy), `conflict`, those of the store and the machine.
   */
  async restore(volume: VolumeRecord, nextNodeId: string): Promise<void> {
    const { db, store, machines, seed } = this.#deps;
    const { volumeId, copy } = volume;
    if (!store) throw noStore();
    store.requireUsable();
    const blob = copy && (await findBlob(db, 'volume', copy.copyId));
    if (!copy || blob?.state !== 'stored' || blob.sealedKey === null)
      throw new AtollError('precondition', `The store has no copy of the volume "${volume.name}"`);
    const key = decrypt(encryptionKey(seed, keyPurpose), blob.sealedKey, copy.copyId);
    const { volumeCopies, transfers } = machines.known(nextNodeId).machine;
    await this.#relocate(volume, nextNodeId, async () => ({
      bring: () =>
        store.bring(blob, {
          receive: urls => transfers.receiveVolume(volumeId, key, blob.bytes, urls),
          open: () => volumeCopies.openWrite(volumeId, key, blob.bytes),
          keep: writeId => volumeCopies.keepWrite(writeId),
          drop: writeId => volumeCopies.dropWrite(writeId),
        }),
      check: async () => {},
      // Its machine is away: the reconciler removes what is there when it is back.
      moved: async () => {},
      release: async () => {},
    }));
  }

  /** Releases the volumes of processes that are over: such a volume is where it was. */
  async settle(): Promise<void> {
    const { db, busy } = this.#deps;
    const replica = this.#replica();
    for (const { volumeId, movingTo } of await volumesLeft(db, replica)) {
      if (this.isBusy(volumeId) || !(await takeOverVolume(db, volumeId, replica))) continue;
      await letGo(db, volumeId, busy.replicaId);
      if (movingTo !== null) await this.#removeLeft(volumeId, movingTo);
    }
  }

  async #relocate(volume: VolumeRecord, nextNodeId: string, prepare: () => Promise<Relocation>): Promise<void> {
    const { db } = this.#deps;
    const { volumeId } = volume;
    await this.#alone(volumeId, async () => {
      const outcome = await beginMove(db, volume, nextNodeId, this.#replica());
      if (outcome !== 'begun') throw refusalOf(outcome, volume.name);
      let isMoved = false;
      try {
        const { bring, check, moved, release } = await prepare();
        try {
          await bring();
          await check();
          isMoved = await finishMove(db, volume, nextNodeId, this.#replica());
          if (!isMoved) throw worked(volume.name);
          await moved();
        } finally {
          await release().catch(() => {}); // it expires by itself
        }
      } finally {
        if (!isMoved) await this.#giveBack(volumeId, nextNodeId);
      }
    });
  }

  /** Does one thing at a time with each volume; this process releases what it has taken. */
  async #alone(volumeId: string, work: () => Promise<void>): Promise<void> {
    if (this.#underWay.has(volumeId)) throw worked(volumeId);
    this.#underWay.add(volumeId);
    try {
      await work();
    } finally {
      await letGo(this.#deps.db, volumeId, this.#deps.busy.replicaId).catch(() => {}); // `settle` does it
      this.#underWay.delete(volumeId);
    }
  }

  async #giveBack(volumeId: string, nextNodeId: string): Promise<void> {
    const { db, busy } = this.#deps;
    await letGo(db, volumeId, busy.replicaId).catch(() => {}); // `settle` does it
    await this.#removeLeft(volumeId, nextNodeId);
  }

  /**
   * Removes what a machine has of a volume whose home is another one; the reconciler removes what can't be removed now.
   */
  async #removeLeft(volumeId: string, nodeId: string): Promise<void> {
    const { db, log, machines } = this.#deps;
    try {
      // Another process may have settled this one's move, and moved the volume there after all.
      const now = await findVolume(db, volumeId);
      if (now?.nodeId === nodeId || now?.movingTo === nodeId) return;
      await machines.get(nodeId).volumes.remove(volumeId);
      await forgetVolumeRemoval(db, { volumeId, nodeId });
    } catch (error) {
      log.warn('what a machine has left of a volume is removed later', { volumeId, nodeId, error: messageOf(error) });
    }
  }

  #replica(): { ownId: string; nowUs: number } {
    return { ownId: this.#deps.busy.replicaId, nowUs: this.#deps.clock() };
  }
}

function refusalOf(refusal: MoveRefusal, name: string): AtollError {
  if (refusal === 'gone') return new AtollError('not_found', `Volume "${name}" is not there any more`);
  if (refusal === 'in_use') return new AtollError('conflict', `A sandbox has the volume "${name}"`);
  if (refusal === 'left_over')
    return new AtollError('conflict', `Another machine has something left of the volume "${name}", which goes first`);
  return worked(name);
}

const worked = (name: string) =>
  new AtollError('conflict', `The volume "${name}" is being moved or copied`, { retryAfterSeconds: 2 });

const noStore = () =>
  new AtollError('precondition', 'copies of volumes need a cluster with a store (ATOLL_STORE): docs/cluster.md');
