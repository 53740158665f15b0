import type { Role } from '../../protocol/api/member.ts';
import type { KnownSession } from '../session/record.ts';
import type { TeamRecord, UserRecord } from '../team/record.ts';
import type { VolumeRecord } from '../volume/record.ts';

/** Who acts, for the audit log. */
export type Actor = { kind: 'apiKey'; id: string } | { kind: 'user'; id: string } | { kind: 'admin'; id: null };

/**
 * When the session of a caller last proved whose it is; null for callers that prove themselves with each request, by a
 * key or token.
 */
type Proof = { provenAtUs: number | null };

/**
 * A team, by its key or by somebody who acts for it. `role`: of a member, or of the member who got the key by listing
 * teams; other keys and an operator may do what an admin may.
 */
export type TeamCaller = Proof & { kind: 'team'; team: TeamRecord; role: Role; actor: Actor };

/** The credential that let a person in, as it is stored. */
export type HeldCredential = { kind: 'accessToken' | 'session'; digest: string };

/** A person, by an access token or a session. */
export type UserCaller = Proof & { kind: 'user'; user: UserRecord; held: HeldCredential; actor: Actor };

/** The operator. */
export type AdminCaller = Proof & { kind: 'admin'; actor: Actor };

/** The holder of a token for one volume's content, who is otherwise unknown. */
export type VolumeCaller = { kind: 'volume'; team: TeamRecord; volume: VolumeRecord; actor: null };

/** The holder of the token for metrics. */
export type ScraperCaller = { kind: 'scraper'; actor: null };

/** A person signed in at the dashboard. */
export type SessionCaller = Proof & KnownSession & { kind: 'session'; actor: Actor };

/** A person signed in with an account. */
export type UserSessionCaller = SessionCaller & { user: UserRecord };

/** The sender of a request. */
export type Caller = ScraperCaller | SessionCaller | TeamCaller | UserCaller | AdminCaller | VolumeCaller;

/** The ways to prove oneself, each with the caller that it leads to. */
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
