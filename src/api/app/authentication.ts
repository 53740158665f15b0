import { AtollError } from '../../base/error.ts';
import type { TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { digestOf } from './credential.ts';

/** What a request carries to prove who sends it. */
export type Credentials = {
  apiKey: string | null;
  /** Of `Authorization: Bearer`. */
  bearer: string | null;
  adminToken: string | null;
  /** Of `X-Team-ID`. */
  teamId: string | null;
};

/** Who acts, for the audit log. */
export type Actor = { kind: 'apiKey'; keyId: string };

export type TeamCaller = { kind: 'team'; team: TeamRecord; actor: Actor };
export type Caller = TeamCaller;

/**
 * Finds the caller. The alternatives are tried independently: a good API key counts whatever else is sent with it.
 * Throws `unauthenticated` when none is good, `forbidden` for a banned team, and for a blocked one unless `readsOrRemoves`.
 */
export async function authenticateTeam(app: App, credentials: Credentials, readsOrRemoves: boolean): Promise<TeamCaller> {
  const caller = await byApiKey(app, credentials);
  if (!caller) {
    throw new AtollError('unauthenticated', 'No valid credential was sent: set the header X-API-Key to an API key of your team');
  }
  if (caller.team.banned) throw new AtollError('forbidden', 'This team is banned');
  if (caller.team.blocked && !readsOrRemoves) {
    throw new AtollError('forbidden', 'This team is blocked: it may read and delete, but not create or change');
  }
  return caller;
}

async function byApiKey(app: App, { apiKey }: Credentials): Promise<TeamCaller | null> {
  const digest = apiKey === null ? null : digestOf('apiKey', apiKey.trim());
  const known = digest === null ? null : await app.credentials.apiKey(digest);
  return known ? { kind: 'team', team: known.team, actor: { kind: 'apiKey', keyId: known.keyId } } : null;
}
