import { findAccessToken } from '../store/access-token.ts';
import { findApiKey, touchCredentials } from '../store/api-key.ts';
import type { Store } from '../store/database.ts';
import { teamsOf } from '../store/member.ts';
import type { Membership } from '../store/member.ts';
import { findTeam } from '../store/team.ts';
import type { TeamRecord } from '../store/team.ts';
import type { UserRecord } from '../store/user.ts';
import type { Clock } from './clock.ts';

const entriesMax = 10_000;

export type KnownApiKey = { keyId: string; team: TeamRecord };
export type KnownToken = { tokenId: string; user: UserRecord; memberships: Membership[] };

/**
 * Who stands behind credentials that were seen, so that a request costs no query for it.
 * Forgets everything as soon as a key, token, team or member changes: in this process by `clear`, elsewhere by what the store notices.
 */
export class CredentialCache {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #known = new Map<string, unknown>();
  #uses = { api_keys: new Map<string, number>(), access_tokens: new Map<string, number>() };
  /** Counts the clears: what was read before one must not be kept after it. */
  #generation = 0;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The API key with this digest, or null. Notes the use. */
  async apiKey(digest: string): Promise<KnownApiKey | null> {
    const key = await this.#find(`key ${digest}`, () => findApiKey(this.#store.db, digest));
    if (key) this.#uses.api_keys.set(key.keyId, this.#clock());
    return key;
  }

  /** The access token with this digest, its user and the user's teams, or null. Notes the use. */
  async accessToken(digest: string): Promise<KnownToken | null> {
    const token = await this.#find(`token ${digest}`, async () => {
      const found = await findAccessToken(this.#store.db, digest);
      return found && { ...found, memberships: await teamsOf(this.#store.db, found.user.userId) };
    });
    if (token) this.#uses.access_tokens.set(token.tokenId, this.#clock());
    return token;
  }

  async team(teamId: string): Promise<TeamRecord | null> {
    return this.#find(`team ${teamId}`, () => findTeam(this.#store.db, { teamId }));
  }

  /** To be called after every change of keys, tokens, teams or members. */
  clear(): void {
    this.#generation++;
    this.#known.clear();
  }

  /** Writes down when credentials were last used; called now and then, not for each request. */
  async flushUses(): Promise<void> {
    const uses = this.#uses;
    this.#uses = { api_keys: new Map(), access_tokens: new Map() };
    await touchCredentials(this.#store.db, 'api_keys', 'key_id', uses.api_keys);
    await touchCredentials(this.#store.db, 'access_tokens', 'token_id', uses.access_tokens);
  }

  async #find<T>(name: string, load: () => Promise<T | null>): Promise<T | null> {
    if (this.#store.changedElsewhere()) this.clear();
    // A name is only ever stored with what its one caller loads.
    const known = this.#known.get(name) as T | undefined;
    if (known !== undefined) return known;
    const generation = this.#generation;
    const loaded = await load();
    if (loaded !== null && generation === this.#generation) {
      if (this.#known.size >= entriesMax) this.#known.clear();
      this.#known.set(name, loaded);
    }
    return loaded;
  }
}
