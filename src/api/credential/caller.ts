import type { Role } from '../../protocol/api/member.ts';
import type { KnownSession } from '../session/record.ts';
import type { TeamRecord, UserRecord } from '../team/record.ts';
import type { VolumeRecord } from '../volume/record.ts';

/** Who acts, for the audit log. */
export type Actor = { kind: 'apiKey'; id: string } | { kind: 'user'; id: string } | { kind: 'admin'; id: null };

/**
 * When the session of a caller last proved whose it is; null for who proves himself with each request, by a key or
 * token.
 */
type Proof = { provenAtUs: number | null };

/**
 * A team, by its key or by somebody who acts for it. `role`: of a member, or of who got the key by listing teams; other
 * keys and an operator may what an admin may.
 */
export type TeamCaller = Proof & { kind: 'team'; team: TeamRecord; role: Role; actor: Actor };

/** What a person was let in by, as it is stored. */
export type HeldCredential = { kind: 'accessToken' | 'session'; digest: string };

/** A person, by an access token or a session. */
export type UserCaller = Proof & { kind: 'user'; user: UserRecord; held: HeldCredential; actor: Actor };

/** The operator. */
export type AdminCaller = Proof & { kind: 'admin'; actor: Actor };

/** Whoever has a token for one volume's content; nobody knows who that is. */
export type VolumeCaller = { kind: 'volume'; team: TeamRecord; volume: VolumeRecord; actor: null };

/** Whoever has the token of metrics. */
export type ScraperCaller = { kind: 'scraper'; actor: null };

/** Whoever is signed in at the dashboard. */
export type SessionCaller = Proof & KnownSession & { kind: 'session'; actor: Actor };

/** Whoever is signed in with an account. */
export type UserSessionCaller = SessionCaller & { user: UserRecord };

/** Who sends a request. */
export type Caller = ScraperCaller | SessionCaller | TeamCaller | UserCaller | AdminCaller | VolumeCaller;

/** The ways to prove oneself, each with what it makes of the caller. */
export type Way =
  | 'apiKey'
  | 'userTeam'
  | 'userDefaultTeam'
  | 'adminTeam'
  | 'user'
  | 'admin'
  | 'session'
  | 'userSession'
  | 'operatorSession'
  | 'metricsToken'
  | 'volumeToken';
