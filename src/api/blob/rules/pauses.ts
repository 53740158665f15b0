import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { AtollError } from '../../../base/error.ts';
import type { DraftRef, Machine, PauseFacts } from '../../../protocol/cluster.ts';
import type { ExecutionRef } from '../../../protocol/node.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { findBlob, onceStored } from '../store/blobs.ts';
import { type LayerDeps, storeLayer } from './layers.ts';
import { carryBetween, newCarryKey } from './write-to-machine.ts';

/** What it takes to store pauses. */
type Deps = LayerDeps & { machines: Machines; seed: Uint8Array };

const keyPurpose = 'pauses in the store';

/** A sandbox, and the machine that it is on. */
type Located = ExecutionRef & { nodeId: string };

/**
 * Pauses that outlive their machine. What a paused sandbox has kept is in the store, encrypted with a key of its own;
 * the seed encrypts this key in the database.
 */
export class DurablePauses {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Throws whatever is known to keep the store from being used. */
  requireUsable(): void {
    this.#deps.store.requireUsable();
  }

  /** Whether the store is usable, as far as is known. */
  get isUsable(): boolean {
    return this.#deps.store.isUsable;
  }

  /**
   * Stores what a paused sandbox has kept on its machine, together with its layers. All of it is in the store when this
   * settles. Errors: those of `ClusterStore.put` and `PauseExchange.describe`.
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
   * What a sandbox that runs or is paused needs of another machine. Errors: those of `PauseExchange.describe`, and
   * `unavailable` while its machine is away.
   */
  async describe({ sandboxId, executionId, nodeId }: Located): Promise<PauseFacts> {
    return this.#deps.machines.known(nodeId).machine.pauses.describe({ sandboxId, executionId });
  }

  /** Brings the layers of a sandbox into the store and to its next machine, while it still runs. */
  async prepare(sandbox: Located, nextNodeId: string): Promise<void> {
    const { machines } = this.#deps;
    const { layers } = await this.describe(sandbox);
    const { machine } = machines.known(sandbox.nodeId);
    const owner = { kind: 'execution', id: sandbox.executionId } as const;
    for (const digest of layers) await storeLayer(this.#deps, digest, owner, async () => machine);
    await machines.layers.ensure(nextNodeId, layers);
  }

  /**
   * Carries a draft of a running sandbox to its next machine: what the pause keeps later is then sent as the
   * difference. Answers the draft's bytes. Errors: those of `DraftExchange`.
   */
  async draft({ nodeId, ...draft }: Located & DraftRef, nextNodeId: string): Promise<number> {
    const { machines } = this.#deps;
    const from = machines.known(nodeId).machine.drafts;
    const { sizeBytes } = await from.describe(draft);
    const to = machines.known(nextNodeId).machine.drafts;
    await carryBetween(machines.carried, key => from.openRead(draft, key), to, draft, sizeBytes);
    return sizeBytes;
  }

  /** Drops a draft on both machines. A draft that can't be dropped now expires. */
  async dropDraft({ nodeId, ...draft }: Located & DraftRef, nextNodeId: string): Promise<void> {
    const drop = async (id: string) => this.#deps.machines.known(id).machine.drafts.drop(draft);
    await Promise.allSettled([nodeId, nextNodeId].map(drop));
  }

  /**
   * Carries what a paused sandbox has kept from its machine to another one, through this process, encrypted. After that
   * it is on both. `draft`: a draft of it that both machines have. Errors: those of `MemoryExchange`.
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
   * Makes sure that a machine has what a paused sandbox has kept. Errors: `internal` with the detail
   * `sandbox_state_damaged` where that is damaged or gone; those of the store and of the machine.
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

  /** Whether a machine has it as that execution. Its other executions there are removed. */
  async #isThere({ sandboxId, executionId }: ExecutionRef, { node }: Pick<Machine, 'node'>): Promise<boolean> {
    const copies = (await node.listPaused()).filter(paused => paused.sandboxId === sandboxId);
    if (copies.some(paused => paused.executionId === executionId)) return true;
    // It was here before, and has gone on elsewhere since. An execution that nobody knows is left alone: then the
    // sandbox does not come here.
    const known = await onceStored(
      this.#deps.db,
      copies.map(copy => copy.executionId),
    );
    for (const stale of known) await node.kill({ sandboxId, executionId: stale });
    return false;
  }
}

const isDone = () => true;

/** Whether the error says that one of the machines no longer has the draft: then everything is sent. */
function isWithoutDraft(error: unknown): false {
  if (error instanceof AtollError && ['not_found', 'invalid'].includes(error.code)) return false;
  throw error;
}

const damaged = (sandboxId: string, cause?: unknown) =>
  new AtollError('internal', `what sandbox ${sandboxId} has kept is not in the store as it was`, {
    detail: 'sandbox_state_damaged',
    cause,
  });
