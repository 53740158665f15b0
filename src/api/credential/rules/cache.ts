import { LRUCache } from 'lru-cache';
import { findAccessToken } from '../store/access-token.ts';
import { findApiKey, touchCredentials } from '../store/api-key.ts';
import { isLive } from '../../session/rules/lifetime.ts';
import { findSession, touchSessions } from '../../session/store/sessions.ts';
import type { KnownSession } from '../../session/record.ts';
import type { Store } from '../../database/database.ts';
import { teamsOf } from '../../team/store/member.ts';
import { findTeam } from '../../team/store/team.ts';
import { findUsers } from '../../team/store/user.ts';
import type { Role } from '../../../protocol/api/member.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Membership, TeamRecord, UserRecord } from '../../team/record.ts';

/** Credentials and teams in memory. Beyond that, those unused for longest are forgotten. */
const entriesMax = 10_000;

/** A valid API key, its team, and its role. */
type KnownApiKey = { keyId: string; team: TeamRecord; role: Role };
/** A valid access token, its user and the user's teams. */
type KnownToken = { tokenId: string; user: UserRecord; memberships: Membership[] };

/**
 * Remembers who is behind credentials, so that a request costs no query. Forgets everything as soon as a key, token,
 * team or member changes: changes of this process call `clear`, and the store notices those of others.
 */
export class CredentialCache {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #known = new LRUCache<string, object>({ max: entriesMax });
  #uses = noUses();
  /** Counts the clears: what was read before a clear must not be kept after it. */
  #generation = 0;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The API key with this digest, or null. Records the use. */
  async apiKey(digest: string): Promise<KnownApiKey | null> {
    const key = await this.#find(`key ${digest}`, () => findApiKey(this.#store.db, digest));
    if (key) this.#uses.api_keys.set(key.keyId, this.#clock());
    return key;
  }

  /** The access token with this digest, its user and the user's teams, or null. Records the use. */
  async accessToken(digest: string): Promise<KnownToken | null> {
    const token = await this.#find(`token ${digest}`, async () => {
      const found = await findAccessToken(this.#store.db, digest);
      return found && { ...found, memberships: await teamsOf(this.#store.db, found.user.userId) };
    });
    if (token) this.#uses.access_tokens.set(token.tokenId, this.#clock());
    return token;
  }

  /** The session with this digest, or null where there is none or it has expired. Records the use. */
  async session(digest: string): Promise<KnownSession | null> {
    const known = await this.#find(`session ${digest}`, () => this.#loadSession(digest));
    const nowUs = this.#clock();
    if (!known || !isLive(known.session, nowUs)) return null;
    known.session.lastUsedAtUs = nowUs;
    this.#uses.sessions.set(known.session.sessionId, nowUs);
    return known;
  }

  async team(teamId: string): Promise<TeamRecord | null> {
    return this.#find(`team ${teamId}`, () => findTeam(this.#store.db, { teamId }));
  }

  /** Call it after every change of keys, tokens, teams or members. */
  clear(): void {
    this.#generation++;
    this.#known.clear();
  }

  /** Writes to the database when credentials were last used. Called from time to time, not for each request. */
  async flushUses(): Promise<void> {
    const uses = this.#uses;
    this.#uses = noUses();
    await touchCredentials(this.#store.db, 'api_keys', 'key_id', uses.api_keys);
    await touchCredentials(this.#store.db, 'access_tokens', 'token_id', uses.access_tokens);
    await touchSessions(this.#store.db, uses.sessions);
  }

  async #loadSession(digest: string): Promise<KnownSession | null> {
    const session = await findSession(this.#store.db, digest);
    if (session === null || session.userId === null) return session && { session, user: null, memberships: [] };
    const user = (await findUsers(this.#store.db, [session.userId])).get(session.userId);
    if (!user) return null;
    // A session that was an operator's ends with the user's role.
    const isOperator = session.isOperator && user.isOperator;
    return { session: { ...session, isOperator }, user, memberships: await teamsOf(this.#store.db, user.userId) };
  }

  async #find<T extends object>(name: string, load: () => Promise<T | null>): Promise<T | null> {
    if (this.#store.changedElsewhere()) this.clear();
    // Each name is only ever used by one caller, and so with one type.
    const known = this.#known.get(name) as T | undefined;
    if (known !== undefined) return known;
    const generation = this.#generation;
    const loaded = await load();
    if (loaded !== null && generation === this.#generation) {
      this.#known.set(name, loaded);
    }
    return loaded;
  }
}

/** When each credential was last used, by its ID. */
function noUses() {
  return {
    api_keys: new Map<string, number>(),
    access_tokens: new Map<string, number>(),
    sessions: new Map<string, number>(),
  };
}
