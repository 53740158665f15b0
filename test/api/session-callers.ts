import { newUuid } from '../../src/base/id.ts';
import { randomHex, sha256Hex } from '../../src/base/crypto/secret.ts';
import { sessionCookie } from '../../src/api/session/cookie.ts';
import { sessionIdleSeconds } from '../../src/api/session/rules/lifetime.ts';
import { insertSession } from '../../src/api/session/store/sessions.ts';
import type { Platform } from './platform.ts';

export type SessionCaller =
  | 'session'
  | 'session with team'
  | "viewer's session with team"
  | "developer's session with team"
  | "session of other team's member"
  | 'session with a foreign team'
  | 'session from a page of the same site'
  | 'session without word of the page'
  | 'expired session'
  | "operator's session"
  | "operator's session with team";

/** What each of them sends; a new session for every request, because one of them signs out. */
export type SessionsOf = Record<SessionCaller, () => Promise<Record<string, string>>>;

export const isSessionCaller = (caller: string): caller is SessionCaller => caller.includes('session');

/** A session of a user or of the operator, `ageSeconds` after its last use. */
export async function beginSession(
  { api, store }: Platform,
  userId: string | null,
  ageSeconds = 0,
): Promise<{ sessionId: string; cookie: string }> {
  const value = randomHex(32);
  const atUs = api.parts.clock() - ageSeconds * 1_000_000;
  const session = {
    sessionId: newUuid(),
    digest: sha256Hex(value),
    userId,
    isOperator: userId === null,
    createdAtUs: atUs,
    lastUsedAtUs: atUs,
    provenAtUs: atUs,
    address: '',
    userAgent: '',
  };
  await insertSession(store.db, session);
  return { sessionId: session.sessionId, cookie: `${sessionCookie}=${value}` };
}

/** The ways in which sessions are sent: by a member, a stranger, the operator, and those that must not count. */
export function sessionsOf(
  platform: Platform,
  memberId: string,
  others: { stranger: { userId: string; teamId: string }; viewerId: string; developerId: string },
): SessionsOf {
  const { stranger, viewerId, developerId } = others;
  const page = { 'sec-fetch-site': 'same-origin' };
  const ownTeam = { 'x-team-id': platform.team.teamId };
  const session =
    (userId: string | null, more: Record<string, string>, ageSeconds = 0) =>
    async () => ({ cookie: (await beginSession(platform, userId, ageSeconds)).cookie, ...more });
  return {
    session: session(memberId, page),
    'session with team': session(memberId, { ...page, ...ownTeam }),
    "viewer's session with team": session(viewerId, { ...page, ...ownTeam }),
    "developer's session with team": session(developerId, { ...page, ...ownTeam }),
    "session of other team's member": session(stranger.userId, { ...page, 'x-team-id': stranger.teamId }),
    'session with a foreign team': session(memberId, { ...page, 'x-team-id': stranger.teamId }),
    'session from a page of the same site': session(memberId, { 'sec-fetch-site': 'same-site', ...ownTeam }),
    'session without word of the page': session(memberId, ownTeam),
    'expired session': session(memberId, { ...page, ...ownTeam }, sessionIdleSeconds + 1),
    "operator's session": session(null, page),
    "operator's session with team": session(null, { ...page, ...ownTeam }),
  };
}
