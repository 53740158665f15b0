import { mkdirSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import type { DraftRef } from '../../../protocol/cluster.ts';
import { emptyFolder } from './arrivals.ts';
import type { KnownPages } from './known-pages.ts';

/** Most drafts here at a time, each as large as its sandbox's memory and disk. */
const draftsMax = 8;
/** How long a draft waits for its pause; whoever has begun the move may be gone. Milliseconds. */
const heldMs = 3 * 60_000;
/** The form of an ID, which names a folder. */
const idForm = /^[0-9a-f-]{36}$/;

/** A draft that is here. `known`: the pages of its memory, on the machine where it was taken. */
export type Draft = { draftId: string; folder: string; known: KnownPages | undefined };

type Held = Draft & { executionId: string; isWhole: boolean; timer: Timer };

/**
 * Drafts: the state of sandboxes a moment before they are moved. Both machines have the same files of a draft, and
 * what the pause then keeps is sent as the difference from them. Nothing depends on a draft: without it everything is
 * sent. A restart of the node drops them.
 */
export class Drafts {
  readonly #place: string;
  readonly #held = new Map<string, Held>();

  constructor(place: string) {
    this.#place = emptyFolder(place);
  }

  /** Makes an empty folder for a draft. Errors: `conflict` if the execution has another one, `unavailable`. */
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

  /** Marks a draft as complete. */
  finish({ draftId }: Pick<DraftRef, 'draftId'>, known?: KnownPages): void {
    const held = this.#held.get(draftId);
    if (!held) return known?.[Symbol.dispose]();
    held.isWhole = true;
    held.known = known;
  }

  /** Makes a draft of the files in a folder. Errors: those of `begin`. */
  async put(draft: DraftRef, from: string): Promise<void> {
    const folder = this.begin(draft);
    await rm(folder, { recursive: true });
    renameSync(from, folder);
    this.finish(draft);
  }

  /** Undefined if it is not here, or not complete yet. */
  find({ executionId, draftId }: Pick<DraftRef, 'executionId' | 'draftId'>): Draft | undefined {
    const held = this.#held.get(draftId);
    return held?.isWhole && held.executionId === executionId ? held : undefined;
  }

  /** Errors: `not_found` if it is not here. */
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
