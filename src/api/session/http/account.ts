import { assert, AtollError } from '../../../base/error.ts';
import { JoinTeam } from '../../../protocol/api/member.ts';
import { InvitedAccount, NewAccount, NewPassword, Session, SessionProof } from '../../../protocol/api/session.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';
import { route } from '../../http/route.ts';
import { joinTeam } from '../../team/rules/invitations.ts';
import type { Accounts } from '../../team/rules/provision-team.ts';
import { setSession } from '../cookie.ts';
import { changePassword, createInvitedAccount, createOperatorAccount } from '../rules/accounts.ts';
import type { Begun } from '../rules/begin.ts';
import { sessionSeconds } from '../rules/lifetime.ts';
import type { Passwords } from '../rules/passwords.ts';
import { proveAgain } from '../rules/sign-in.ts';
import type { SignInDeps } from '../rules/sign-in.ts';
import { requireOwnPage, takeAttempt } from './own-page.ts';
import { sessionView } from './view.ts';

const begins = { description: 'Signed in', schema: Session, headers: { 'Set-Cookie': 'The session' } };

/** The answer that begins a session. */
export async function begun({ credentials }: { credentials: CredentialCache }, { session, value }: Begun) {
  const known = await credentials.session(session.digest);
  assert(known !== null, 'a session that has just begun is known');
  return {
    status: 201 as const,
    body: sessionView(known),
    headers: { 'Set-Cookie': setSession(value, sessionSeconds) },
  };
}

/** `PUT /session/proof` */
export const proveSessionRoute = route({
  operationId: 'proveSession',
  method: 'PUT',
  path: '/session/proof',
  summary:
    'Prove again whose the session is, by password, access token or a new link: for ten minutes it may do everything',
  auth: 'session',
  body: SessionProof,
  strict: true,
  responses: { 204: { description: 'Proven' } },
  async handle(deps: SignInDeps, { caller, body, address, audit }) {
    if (Object.keys(body).length === 0)
      throw new AtollError('invalid', 'request body: password, accessToken or code is needed');
    takeAttempt(deps, address);
    audit({ target: `session:${caller.session.sessionId}` });
    await proveAgain(deps, caller.session, body);
    return { status: 204 };
  },
});

/** `POST /session/account` */
export const createAccountRoute = route({
  operationId: 'createOperatorAccount',
  method: 'POST',
  path: '/session/account',
  summary: 'Create an account with a password for the operator who signed in by a link; the session becomes one of it',
  auth: 'operatorSession',
  proof: true,
  noStore: true,
  body: NewAccount,
  strict: true,
  responses: { 201: begins },
  errors: [409],
  async handle(deps: Accounts & { passwords: Passwords }, { caller, body, address, userAgent, audit }) {
    const { user, ...made } = await createOperatorAccount(deps, caller.session, body, { address, userAgent });
    audit({ target: `user:${user.userId}`, after: { name: user.name, email: user.email, operator: true } });
    return begun(deps, made);
  },
});

/** `PUT /session/password` */
export const changePasswordRoute = route({
  operationId: 'changePassword',
  method: 'PUT',
  path: '/session/password',
  summary: 'Set the own password; every session of the account ends and a new one begins',
  auth: 'userSession',
  proof: true,
  noStore: true,
  body: NewPassword,
  strict: true,
  responses: { 201: begins },
  async handle(deps: Accounts & { passwords: Passwords }, { caller, body, address, userAgent, audit }) {
    audit({ target: `user:${caller.user.userId}`, after: { password: 'changed' } });
    return begun(deps, await changePassword(deps, caller.user, caller.session, body.password, { address, userAgent }));
  },
});

/** `POST /session/invited` */
export const createInvitedAccountRoute = route({
  operationId: 'createInvitedAccount',
  method: 'POST',
  path: '/session/invited',
  summary: 'Create an account by an invitation, join its team and sign in',
  auth: 'none',
  noStore: true,
  body: InvitedAccount,
  strict: true,
  responses: { 201: begins },
  errors: [401, 403, 409, 429],
  async handle(deps: SignInDeps, { body, sameOrigin, origin, address, userAgent, audit }) {
    requireOwnPage(sameOrigin, origin);
    takeAttempt(deps, address);
    const { user, team, ...made } = await createInvitedAccount(deps, body, { address, userAgent });
    audit({ target: `user:${user.userId}`, after: { name: user.name, email: user.email, team: team.teamId } });
    return begun(deps, made);
  },
});

/** `POST /session/teams` */
export const joinTeamRoute = route({
  operationId: 'joinTeam',
  method: 'POST',
  path: '/session/teams',
  summary: 'Join a team by an invitation, as whoever is signed in',
  auth: 'userSession',
  body: JoinTeam,
  strict: true,
  responses: { 201: { description: 'The session, with the team', schema: Session } },
  errors: [409],
  async handle(deps: SignInDeps, { caller, body, address, audit }) {
    takeAttempt(deps, address);
    const { user, session } = caller;
    const team = await joinTeam(deps, user, body.invitation);
    audit({ target: `team:${team.teamId}`, after: { member: user.userId } });
    const known = await deps.credentials.session(session.digest);
    assert(known !== null, 'the session that asks is known');
    return { status: 201, body: sessionView(known) };
  },
});
