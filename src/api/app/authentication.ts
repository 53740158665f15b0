import { AtollError } from '../../base/error.ts';
import { secretsEqual } from '../../base/secret.ts';
import type { TeamRecord } from '../store/team.ts';
import type { UserRecord } from '../store/user.ts';
import { findVolume } from '../store/volumes.ts';
import type { VolumeRecord } from '../store/volumes.ts';
import type { App } from './context.ts';
import { digestOf } from './credential.ts';
import type { KnownToken } from './credential-cache.ts';
import { readVolumeToken } from './volume-token.ts';

/** What a request carries to prove who sends it. */
export type Credentials = {
  apiKey: string | null;
  /** Of `Authorization: Bearer`. */
  bearer: string | null;
  adminToken: string | null;
  /** Of `X-Team-ID`: the team for which a user or an operator acts. */
  teamId: string | null;
};

/** Who acts, for the audit log. */
export type Actor = { kind: 'apiKey'; id: string } | { kind: 'user'; id: string } | { kind: 'admin'; id: null };

export type TeamCaller = { kind: 'team'; team: TeamRecord; actor: Actor };
export type UserCaller = { kind: 'user'; user: UserRecord; actor: Actor };
export type AdminCaller = { kind: 'admin'; actor: Actor };
/** Whoever has a token for one volume's content; nobody knows who that is. */
export type VolumeCaller = { kind: 'volume'; team: TeamRecord; volume: VolumeRecord; actor: null };
/** Whoever has the token of metrics. */
export type ScraperCaller = { kind: 'scraper'; actor: null };
export type Caller = ScraperCaller | TeamCaller | UserCaller | AdminCaller | VolumeCaller;

/** The ways to prove oneself, each with what it makes of the caller. */
export type Way = 'apiKey' | 'userTeam' | 'userDefaultTeam' | 'adminTeam' | 'user' | 'admin' | 'metricsToken' | 'volumeToken';

/**
 * Finds the caller. The ways are tried independently: a good credential counts whatever else is sent with it.
 * Throws `unauthenticated` when none is good, `forbidden` for a banned team, and for a blocked one unless `readsOrRemoves`.
 */
export async function authenticate(
  app: App,
  credentials: Credentials,
  ways: readonly Way[],
  readsOrRemoves: boolean,
): Promise<Caller> {
  for (const way of ways) {
    const caller = await finders[way](app, credentials);
    if (!caller) continue;
    if (caller.kind === 'volume' || (caller.kind === 'team' && caller.actor.kind !== 'admin')) checkTeam(caller.team, readsOrRemoves);
    return caller;
  }
  throw new AtollError('unauthenticated', `No valid credential was sent: this needs ${ways.map(way => wayWords[way]).join(', or ')}`);
}

const wayWords: Record<Way, string> = {
  apiKey: 'the header X-API-Key with an API key of your team',
  userTeam: 'an access token (Authorization: Bearer) with X-Team-ID of a team of yours',
  userDefaultTeam: 'an access token (Authorization: Bearer)',
  adminTeam: 'X-Admin-Token with X-Team-ID',
  user: 'an access token (Authorization: Bearer)',
  admin: 'X-Admin-Token',
  volumeToken: 'the token of the volume (Authorization: Bearer), which has not expired',
  metricsToken: 'the token of metrics (Authorization: Bearer)',
};

function checkTeam(team: TeamRecord, readsOrRemoves: boolean): void {
  if (team.banned) throw new AtollError('forbidden', 'This team is banned');
  if (team.blocked && !readsOrRemoves) {
    throw new AtollError('forbidden', 'This team is blocked: it may read and delete, but not create or change');
  }
}

const finders: Record<Way, (app: App, credentials: Credentials) => Promise<Caller | null>> = {
  async apiKey(app, { apiKey }) {
    const digest = apiKey === null ? null : digestOf('apiKey', apiKey.trim());
    const known = digest === null ? null : await app.credentials.apiKey(digest);
    return known && { kind: 'team', team: known.team, actor: { kind: 'apiKey', id: known.keyId } };
  },
  async user(app, credentials) {
    const token = await findToken(app, credentials);
    return token && { kind: 'user', user: token.user, actor: userActor(token) };
  },
  async userTeam(app, credentials) {
    if (credentials.teamId === null) return null;
    const token = await findToken(app, credentials);
    const membership = token?.memberships.find(({ team }) => team.teamId === credentials.teamId);
    return token && membership ? { kind: 'team', team: membership.team, actor: userActor(token) } : null;
  },
  async userDefaultTeam(app, credentials) {
    if (credentials.teamId !== null) return null;
    const token = await findToken(app, credentials);
    const [first] = token?.memberships ?? [];
    return token && first ? { kind: 'team', team: first.team, actor: userActor(token) } : null;
  },
  async admin(app, credentials) {
    return isAdmin(app, credentials) ? { kind: 'admin', actor: { kind: 'admin', id: null } } : null;
  },
  async volumeToken(app, { bearer }) {
    const named = bearer === null ? null : readVolumeToken(app, bearer);
    if (!named) return null;
    const [volume, team] = await Promise.all([findVolume(app.store.db, named.volumeId), app.credentials.team(named.teamId)]);
    return volume && team && volume.teamId === team.teamId ? { kind: 'volume', team, volume, actor: null } : null;
  },
  async metricsToken({ metricsToken }, { bearer }) {
    return metricsToken !== null && bearer !== null && secretsEqual(bearer, metricsToken) ? { kind: 'scraper', actor: null } : null;
  },
  async adminTeam(app, credentials) {
    if (credentials.teamId === null || !isAdmin(app, credentials)) return null;
    const team = await app.credentials.team(credentials.teamId);
    return team && { kind: 'team', team, actor: { kind: 'admin', id: null } };
  },
};

async function findToken(app: App, { bearer }: Credentials): Promise<KnownToken | null> {
  const digest = bearer === null ? null : digestOf('accessToken', bearer);
  return digest === null ? null : app.credentials.accessToken(digest);
}

function userActor({ user }: KnownToken): Actor {
  return { kind: 'user', id: user.userId };
}

function isAdmin(app: App, { adminToken }: Credentials): boolean {
  return app.adminToken !== null && adminToken !== null && secretsEqual(adminToken, app.adminToken);
}
