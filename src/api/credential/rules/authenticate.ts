import { AtollError } from '../../../base/error.ts';
import { secretsEqual } from '../../../base/crypto/secret.ts';
import { findVolume } from '../../volume/store/volumes.ts';
import { digestOf } from './credential.ts';
import { sessionDigest } from '../../session/cookie.ts';
import type { KnownSession } from '../../session/record.ts';
import { readVolumeToken } from '../../volume/rules/token.ts';
import type { Membership, TeamRecord, UserRecord } from '../../team/record.ts';
import type { Actor, AdminCaller, Caller, HeldCredential, SessionCaller, TeamCaller, Way } from '../caller.ts';
import type { Db } from '../../database/db.ts';
import type { Clock } from '../../../base/clock.ts';
import type { CredentialCache } from './cache.ts';

/** Dependencies of finding the caller of a request. */
export type AuthenticationDeps = {
  adminToken: string | null;
  clock: Clock;
  credentials: CredentialCache;
  db: Db;
  domain: string;
  metricsToken: string | null;
  seed: Uint8Array;
};

/** The parts of a request that prove who sends it. */
export type Credentials = {
  apiKey: string | null;
  /** Value of `Authorization: Bearer`. */
  bearer: string | null;
  adminToken: string | null;
  /** Value of the dashboard's cookie, where the browser says that a page of ours sends it. */
  session: string | null;
  /** Value of `X-Team-ID`: the team for which a user or an operator acts. */
  teamId: string | null;
};

/**
 * Finds the caller. Each way is tried on its own: one valid credential is enough, whatever else is sent with it. Throws
 * `unauthenticated` when none is valid, `forbidden` for a banned team, and for a blocked one unless `readsOrRemoves`.
 */
export async function authenticate(
  deps: AuthenticationDeps,
  credentials: Credentials,
  ways: readonly Way[],
  readsOrRemoves: boolean,
): Promise<Caller> {
  for (const way of ways) {
    const caller = await finders[way](deps, credentials);
    if (!caller) continue;
    if (caller.kind === 'volume' || (caller.kind === 'team' && caller.actor.kind !== 'admin'))
      checkTeam(caller.team, readsOrRemoves);
    return caller;
  }
  // A caller who sends a key knows that one is needed, but it is of another installation, or an old one.
  const reason =
    ways.includes('apiKey') && credentials.apiKey?.trim()
      ? "the API key in X-API-Key is none of this installation's, or was revoked"
      : `this needs ${ways.map(way => wayWords[way]).join(', or ')}`;
  throw new AtollError('unauthenticated', `No valid credential was sent: ${reason}`);
}

const wayWords: Record<Way, string> = {
  apiKey: 'the header X-API-Key with an API key of your team',
  userTeam: 'an access token (Authorization: Bearer) or a session with X-Team-ID of a team of yours',
  userDefaultTeam: 'an access token (Authorization: Bearer) or a session',
  adminTeam: "X-Admin-Token (or an operator's session) with X-Team-ID",
  user: 'an access token (Authorization: Bearer) or a session',
  admin: "X-Admin-Token, or an operator's session",
  session: 'a session, from a page of the dashboard',
  userSession: 'a session of a user, from a page of the dashboard',
  operatorSession: "an operator's session, from a page of the dashboard",
  volumeToken: 'the token of the volume (Authorization: Bearer), which has not expired',
  metricsToken: 'the token of metrics (Authorization: Bearer)',
};

function checkTeam(team: TeamRecord, readsOrRemoves: boolean): void {
  if (team.banned) throw new AtollError('forbidden', 'This team is banned');
  if (team.blocked && !readsOrRemoves) {
    throw new AtollError('forbidden', 'This team is blocked: it may read and delete, but not create or change');
  }
}

const finders: Record<Way, (deps: AuthenticationDeps, credentials: Credentials) => Promise<Caller | null>> = {
  async apiKey(deps, { apiKey }) {
    const digest = apiKey === null ? null : digestOf('apiKey', apiKey.trim());
    const known = digest === null ? null : await deps.credentials.apiKey(digest);
    const actor: Actor | null = known && { kind: 'apiKey', id: known.keyId };
    return known && actor && { kind: 'team', team: known.team, role: known.role, provenAtUs: null, actor };
  },
  async user(deps, credentials) {
    const person = await findPerson(deps.credentials, credentials);
    if (!person) return null;
    const { user, provenAtUs, held } = person;
    return { kind: 'user', user, provenAtUs, held, actor: userActor(user) };
  },
  async userTeam(deps, credentials) {
    if (credentials.teamId === null) return null;
    const person = await findPerson(deps.credentials, credentials);
    const membership = person?.memberships.find(({ team }) => team.teamId === credentials.teamId);
    return person && membership ? memberCaller(person, membership) : null;
  },
  async userDefaultTeam(deps, credentials) {
    if (credentials.teamId !== null) return null;
    const person = await findPerson(deps.credentials, credentials);
    const [first] = person?.memberships ?? [];
    return person && first ? memberCaller(person, first) : null;
  },
  session: sessionCaller,
  async userSession(deps, credentials) {
    const caller = await sessionCaller(deps, credentials);
    return caller?.user ? caller : null;
  },
  async operatorSession(deps, credentials) {
    const caller = await sessionCaller(deps, credentials);
    return caller?.session.isOperator ? caller : null;
  },
  async admin(deps, credentials) {
    return findAdmin(deps, credentials);
  },
  async volumeToken(deps, { bearer }) {
    const named = bearer === null ? null : readVolumeToken(deps, bearer);
    if (!named) return null;
    const [volume, team] = await Promise.all([
      findVolume(deps.db, named.volumeId),
      deps.credentials.team(named.teamId),
    ]);
    return volume && team && volume.teamId === team.teamId ? { kind: 'volume', team, volume, actor: null } : null;
  },
  async metricsToken({ metricsToken }, { bearer }) {
    return metricsToken !== null && bearer !== null && secretsEqual(bearer, metricsToken)
      ? { kind: 'scraper', actor: null }
      : null;
  },
  async adminTeam(deps, credentials) {
    const admin = credentials.teamId === null ? null : await findAdmin(deps, credentials);
    const team = admin && (await deps.credentials.team(credentials.teamId ?? ''));
    return team && { ...admin, kind: 'team', team, role: 'admin' };
  },
};

const operatorActor: Actor = { kind: 'admin', id: null };

type Person = { user: UserRecord; memberships: Membership[]; provenAtUs: number | null; held: HeldCredential };

/** The user behind an access token or a session. */
async function findPerson(cache: CredentialCache, credentials: Credentials): Promise<Person | null> {
  const { bearer } = credentials;
  const digest = bearer === null ? null : digestOf('accessToken', bearer);
  const token = digest === null ? null : await cache.accessToken(digest);
  if (token && digest !== null) return { ...token, provenAtUs: null, held: { kind: 'accessToken', digest } };
  const known = await findSession(cache, credentials);
  if (!known?.user) return null;
  const { session, user, memberships } = known;
  return { user, memberships, provenAtUs: session.provenAtUs, held: { kind: 'session', digest: session.digest } };
}

async function sessionCaller(
  { credentials: cache }: Pick<AuthenticationDeps, 'credentials'>,
  credentials: Credentials,
): Promise<SessionCaller | null> {
  const known = await findSession(cache, credentials);
  if (!known) return null;
  const { session, user } = known;
  return { ...known, kind: 'session', provenAtUs: session.provenAtUs, actor: user ? userActor(user) : operatorActor };
}

async function findSession(cache: CredentialCache, { session }: Credentials): Promise<KnownSession | null> {
  const digest = session === null ? null : sessionDigest(session);
  return digest === null ? null : cache.session(digest);
}

const userActor = ({ userId }: UserRecord): Actor => ({ kind: 'user', id: userId });

const memberCaller = ({ user, provenAtUs }: Person, { team, role }: Membership): TeamCaller => ({
  kind: 'team',
  team,
  role,
  provenAtUs,
  actor: userActor(user),
});

/** The operator, by the token or by an operator's session. */
async function findAdmin(
  { adminToken: wanted, credentials: cache }: Pick<AuthenticationDeps, 'adminToken' | 'credentials'>,
  credentials: Credentials,
): Promise<AdminCaller | null> {
  const { adminToken } = credentials;
  if (wanted !== null && adminToken !== null && secretsEqual(adminToken, wanted))
    return { kind: 'admin', provenAtUs: null, actor: operatorActor };
  const known = await findSession(cache, credentials);
  return known?.session.isOperator
    ? { kind: 'admin', provenAtUs: known.session.provenAtUs, actor: operatorActor }
    : null;
}
