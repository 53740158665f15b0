import { findApiKey, touchApiKeys } from '../store/api-key.ts';
import type { Store } from '../store/database.ts';
import type { TeamRecord } from '../store/team.ts';
import type { Clock } from './clock.ts';

const entriesMax = 10_000;

export type KnownApiKey = { keyId: string; team: TeamRecord };

/**
 * API keys that were seen, by digest, so that a request costs no query for its key.
 * Forgets everything as soon as a key or a team changes: in this process by `clear`, elsewhere by what the store notices.
 */
export class CredentialCache {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #keys = new Map<string, KnownApiKey>();
  #uses = new Map<string, number>();
  /** Counts the clears: what was read before one must not be kept after it. */
  #generation = 0;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The key with this digest, or null. Notes the use. */
  async apiKey(digest: string): Promise<KnownApiKey | null> {
    if (this.#store.changedElsewhere()) this.clear();
    const known = this.#keys.get(digest) ?? (await this.#load(digest));
    if (known) this.#uses.set(known.keyId, this.#clock());
    return known;
  }

  /** To be called after every change of keys, teams or members. */
  clear(): void {
    this.#generation++;
    this.#keys.clear();
  }

  /** Writes down when keys were last used; called now and then, not for each request. */
  async flushUses(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = this.#uses;
    this.#uses = new Map();
    await touchApiKeys(this.#store.db, uses);
  }

  async #load(digest: string): Promise<KnownApiKey | null> {
    const generation = this.#generation;
    const key = await findApiKey(this.#store.db, digest);
    if (key && generation === this.#generation) {
      if (this.#keys.size >= entriesMax) this.#keys.clear();
      this.#keys.set(digest, key);
    }
    return key;
  }
}
