import { mkdirSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import type { DraftRef } from '../../../protocol/cluster.ts';
import { emptyFolder } from './arrivals.ts';
import type { KnownPages } from './known-pages.ts';

/** Drafts that are here at a time, each as large as its sandbox's memory and disk. */
const draftsMax = 8;
/** For how long one waits for the pause that it is for; who has begun that may be no more. Milliseconds. */
const heldMs = 3 * 60_000;
/** Names a folder. */
const idForm = /^[0-9a-f-]{36}$/;

/** One that is here. `known`: the pages of its memory, where it was taken. */
export type Draft = { draftId: string; folder: string; known: KnownPages | undefined };

type Held = Draft & { executionId: string; isWhole: boolean; timer: Timer };

/**
 * Drafts: what sandboxes were, a moment before they are moved. Both machines have the same files of one, and what the
 * pause then keeps is sent as what differs from them. Nothing depends on one: without it all is sent. A restart of the
 * node drops them.
 */
export class Drafts {
  readonly #place: string;
  readonly #held = new Map<string, Held>();

  constructor(place: string) {
    this.#place = emptyFolder(place);
  }

  /** An empty folder for one. Errors: `conflict` where there is another one of the execution, `unavailable`. */
  begin({ sandboxId, executionId, draftId }: DraftRef): string {
    if (!idForm.test(draftId)) throw new AtollError('invalid', `${draftId} is not the ID of a draft`);
    if ([...this.#held.values()].some(held => held.executionId === executionId))
      throw new AtollError('conflict', `somebody is moving sandbox ${sandboxId} already`);
    if (this.#held.size >= draftsMax)
      throw new AtollError('unavailable', `${draftsMax} drafts of sandboxes are on this node, which is the most`);
    const folder = join(this.#place, draftId);
    mkdirSync(folder, { mode: 0o700 });
    const timer = setTimeout(() => void this.drop({ draftId }), heldMs);
    timer.unref();
    this.#held.set(draftId, { draftId, executionId, folder, known: undefined, isWhole: false, timer });
    return folder;
  }

  /** From now on all of it is there. */
  finish({ draftId }: Pick<DraftRef, 'draftId'>, known?: KnownPages): void {
    const held = this.#held.get(draftId);
    if (!held) return known?.[Symbol.dispose]();
    held.isWhole = true;
    held.known = known;
  }

  /** Takes the files in a folder for one. Errors: those of `begin`. */
  async put(draft: DraftRef, from: string): Promise<void> {
    const folder = this.begin(draft);
    await rm(folder, { recursive: true });
    renameSync(from, folder);
    this.finish(draft);
  }

  /** Undefined where it is not here, or not whole yet. */
  find({ executionId, draftId }: Pick<DraftRef, 'executionId' | 'draftId'>): Draft | undefined {
    const held = this.#held.get(draftId);
    return held?.isWhole && held.executionId === executionId ? held : undefined;
  }

  /** Errors: `not_found` where it is not here. */
  require(draft: DraftRef): Draft {
    const found = this.find(draft);
    if (found) return found;
    throw new AtollError('not_found', `there is no draft of sandbox ${draft.sandboxId} on this node`);
  }

  async drop({ draftId }: Pick<DraftRef, 'draftId'>): Promise<void> {
    const held = this.#held.get(draftId);
    if (!held) return;
    clearTimeout(held.timer);
    this.#held.delete(draftId);
    held.known?.[Symbol.dispose]();
    await rm(held.folder, { recursive: true, force: true });
  }
}
