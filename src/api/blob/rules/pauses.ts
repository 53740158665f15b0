import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { AtollError } from '../../../base/error.ts';
import type { DraftRef, Machine, PauseFacts } from '../../../protocol/cluster.ts';
import type { ExecutionRef } from '../../../protocol/node.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { findBlob, onceStored } from '../store/blobs.ts';
import { type LayerDeps, storeLayer } from './layers.ts';
import { carryBetween, newCarryKey } from './write-to-machine.ts';

/** What pauses are stored with. */
type Deps = LayerDeps & { machines: Machines; seed: Uint8Array };

const keyPurpose = 'pauses in the store';

/** A sandbox, and the machine that it is on. */
type Located = ExecutionRef & { nodeId: string };

/**
 * Pauses that outlive their machine: what a paused sandbox has kept is in the store, encrypted with a key of its own,
 * which is in the database, encrypted by the seed.
 */
export class DurablePauses {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Throws what keeps the store from being used, as far as that is known. */
  requireUsable(): void {
    this.#deps.store.requireUsable();
  }

  /** Whether nothing is known that keeps the store from being used. */
  get isUsable(): boolean {
    return this.#deps.store.isUsable;
  }

  /**
   * Puts what a sandbox that is paused on its machine has kept into the store, with its layers. When this settles all
   * of it is there. Errors: those of `ClusterStore.put` and `PauseExchange.describe`.
   */
  async store({ sandboxId, executionId, nodeId }: Located): Promise<void> {
    const { db, store, machines, seed } = this.#deps;
    const target = { sandboxId, executionId };
    const owner = { kind: 'execution', id: executionId } as const;
    const { machine } = machines.known(nodeId);
    const { pauses, transfers } = machine;
    const facts = await pauses.describe(target);
    for (const digest of facts.layers) await storeLayer(this.#deps, digest, owner, async () => machine);
    if ((await findBlob(db, 'pause', executionId))?.state === 'stored') return;
    const key = newCarryKey();
    const sealedKey = encrypt(encryptionKey(seed, keyPurpose), key, executionId);
    const outgoing = {
      sizeBytes: facts.sizeBytes,
      send: (urls: string[]) => transfers.sendPause(target, key, urls),
      open: () => pauses.openRead(target, key),
    };
    if (!(await store.put({ kind: 'pause', name: executionId, sealedKey, facts }, outgoing, owner)))
      throw new AtollError('conflict', `Sandbox "${sandboxId}" is being stored already: ask again`);
  }

  /**
   * What a sandbox that runs or is paused on its machine needs of another one. Errors: those of
   * `PauseExchange.describe`, and `unavailable` while its machine is away.
   */
  async describe({ sandboxId, executionId, nodeId }: Located): Promise<PauseFacts> {
    return this.#deps.machines.known(nodeId).machine.pauses.describe({ sandboxId, executionId });
  }

  /** Brings the layers of a sandbox into the store and to the machine that is to have it, while it still runs. */
  async prepare(sandbox: Located, nextNodeId: string): Promise<void> {
    const { machines } = this.#deps;
    const { layers } = await this.describe(sandbox);
    const { machine } = machines.known(sandbox.nodeId);
    const owner = { kind: 'execution', id: sandbox.executionId } as const;
    for (const digest of layers) await storeLayer(this.#deps, digest, owner, async () => machine);
    await machines.layers.ensure(nextNodeId, layers);
  }

  /**
   * Carries a draft of a sandbox that runs to the machine that is to have it: what its pause keeps then is sent as what
   * differs from that. Answers its bytes. Errors: those of `DraftExchange`.
   */
  async draft({ nodeId, ...draft }: Located & DraftRef, nextNodeId: string): Promise<number> {
    const { machines } = this.#deps;
    const from = machines.known(nodeId).machine.drafts;
    const { sizeBytes } = await from.describe(draft);
    const to = machines.known(nextNodeId).machine.drafts;
    await carryBetween(machines.carried, key => from.openRead(draft, key), to, draft, sizeBytes);
    return sizeBytes;
  }

  /** Drops a draft on both machines. What can't be dropped now runs out. */
  async dropDraft({ nodeId, ...draft }: Located & DraftRef, nextNodeId: string): Promise<void> {
    const drop = async (id: string) => this.#deps.machines.known(id).machine.drafts.drop(draft);
    await Promise.allSettled([nodeId, nextNodeId].map(drop));
  }

  /**
   * Carries what a sandbox that is paused on its machine has kept to another one, through this process, encrypted. It
   * is on both then. `draft`: one that both machines have of it. Errors: those of `MemoryExchange`.
   */
  async carry(
    { sandboxId, executionId, nodeId }: Located,
    nextNodeId: string,
    draft: { draftId: string; sizeBytes: number } | null = null,
  ): Promise<void> {
    const { machines } = this.#deps;
    const target = { sandboxId, executionId };
    const { machine } = machines.known(nextNodeId);
    if (await this.#isThere(target, machine)) return;
    const { pauses, drafts } = machines.known(nodeId).machine;
    if (draft) {
      const { draftId, sizeBytes } = draft;
      const open = (key: string) => drafts.openRest({ ...target, draftId }, key);
      const carried = carryBetween(machines.carried, open, machine.pauses, target, sizeBytes);
      if (await carried.then(isDone, isWithoutDraft)) return;
    }
    const { sizeBytes } = await pauses.describe(target);
    await carryBetween(machines.carried, key => pauses.openRead(target, key), machine.pauses, target, sizeBytes);
  }

  /** What a stored pause needs of a machine. Errors: `not_found`. */
  async facts(executionId: string): Promise<PauseFacts> {
    const { facts } = (await findBlob(this.#deps.db, 'pause', executionId)) ?? {};
    if (facts) return facts;
    throw new AtollError('not_found', 'What the sandbox has kept is not in the store');
  }

  /**
   * Makes sure that a machine has what a paused sandbox has kept. Errors: `internal` for what is damaged or gone, with
   * the detail `sandbox_state_damaged`; those of the store and of the machine.
   */
  async bring({ sandboxId, executionId, nodeId }: Located): Promise<void> {
    const { db, store, machines, seed } = this.#deps;
    const target = { sandboxId, executionId };
    const { machine } = machines.known(nodeId);
    const { pauses, transfers } = machine;
    if (await this.#isThere(target, machine)) return;
    const blob = await findBlob(db, 'pause', executionId);
    if (!blob?.facts || blob.state !== 'stored' || blob.sealedKey === null) throw damaged(sandboxId);
    const { bytes } = blob;
    await machines.layers.ensure(nodeId, blob.facts.layers);
    const key = decrypt(encryptionKey(seed, keyPurpose), blob.sealedKey, executionId);
    await store
      .bring(blob, {
        receive: urls => transfers.receivePause(target, key, bytes, urls),
        open: () => pauses.openWrite(target, key, bytes),
        keep: writeId => pauses.keepWrite(writeId),
        drop: writeId => pauses.dropWrite(writeId),
      })
      .catch((error: unknown) => {
        if (!(error instanceof AtollError) || (error.code !== 'invalid' && error.code !== 'not_found')) throw error;
        throw damaged(sandboxId, error);
      });
  }

  /** Whether a machine has it as that execution. Others of it go. */
  async #isThere({ sandboxId, executionId }: ExecutionRef, { node }: Pick<Machine, 'node'>): Promise<boolean> {
    const copies = (await node.listPaused()).filter(paused => paused.sandboxId === sandboxId);
    if (copies.some(paused => paused.executionId === executionId)) return true;
    // It was here before, and has gone on elsewhere since. What nobody knows is left alone: then it does not come here.
    const known = await onceStored(
      this.#deps.db,
      copies.map(copy => copy.executionId),
    );
    for (const stale of known) await node.kill({ sandboxId, executionId: stale });
    return false;
  }
}

const isDone = () => true;

/** Whether what is wrong is that one of the machines has its draft no more: then all is to be sent. */
function isWithoutDraft(error: unknown): false {
  if (error instanceof AtollError && ['not_found', 'invalid'].includes(error.code)) return false;
  throw error;
}

const damaged = (sandboxId: string, cause?: unknown) =>
  new AtollError('internal', `what sandbox ${sandboxId} has kept is not in the store as it was`, {
    detail: 'sandbox_state_damaged',
    cause,
  });
