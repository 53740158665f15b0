import { AtollError } from '../../../base/error.ts';
import { formatTime } from '../../../base/time.ts';
import { NewSignInLink, Session, SignIn, SignInLink } from '../../../protocol/api/session.ts';
import type { Clock } from '../../../base/clock.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';
import type { Db } from '../../database/db.ts';
import { route } from '../../http/route.ts';
import { clearSession } from '../cookie.ts';
import { createSignInLink } from '../rules/links.ts';
import { finishAtProvider } from '../rules/oidc.ts';
import type { OidcDeps } from '../rules/oidc.ts';
import { signIn } from '../rules/sign-in.ts';
import type { SignInDeps } from '../rules/sign-in.ts';
import { begun } from './account.ts';
import { requireOwnPage, takeAttempt } from './own-page.ts';
import { endSession } from '../rules/own-sessions.ts';
import { sessionView } from './view.ts';

/** `POST /session` */
export const signInRoute = route({
  operationId: 'signIn',
  method: 'POST',
  path: '/session',
  summary: 'Sign in: begin a session of a browser at the dashboard',
  auth: 'none',
  noStore: true,
  body: SignIn,
  responses: { 201: { description: 'Signed in', schema: Session, headers: { 'Set-Cookie': 'The session' } } },
  errors: [401, 403, 404, 429],
  async handle(deps: SignInDeps & OidcDeps, { body, sameOrigin, origin, address, userAgent, audit }) {
    const { code, accessToken, email, password, provider } = body;
    if (
      [code, accessToken, provider].every(way => way === undefined) &&
      (email === undefined || password === undefined)
    )
      throw new AtollError('invalid', 'request body: code, accessToken, provider, or email and password are needed');
    requireOwnPage(sameOrigin, origin);
    takeAttempt(deps, address);
    const from = { address, userAgent };
    const made = provider ? await finishAtProvider(deps, provider, from) : await signIn(deps, body, from);
    const { sessionId, userId, isOperator } = made.session;
    audit({ target: `session:${sessionId}`, after: { userId, operator: isOperator } });
    return begun(deps, made);
  },
});

/** `GET /session` */
export const readSessionRoute = route({
  operationId: 'getSession',
  method: 'GET',
  path: '/session',
  summary: 'Get the session: who is signed in',
  auth: 'session',
  noStore: true,
  responses: { 200: { description: 'The session', schema: Session } },
  async handle(_deps: object, { caller }) {
    return { status: 200, body: sessionView(caller) };
  },
});

/** `DELETE /session` */
export const signOutRoute = route({
  operationId: 'signOut',
  method: 'DELETE',
  path: '/session',
  summary: 'Sign out: end the session',
  auth: 'session',
  responses: { 204: { description: 'Signed out', headers: { 'Set-Cookie': 'Nothing' } } },
  async handle(deps: { credentials: CredentialCache; db: Db }, { caller, audit }) {
    const { sessionId } = caller.session;
    audit({ target: `session:${sessionId}` });
    await endSession(deps, caller.session, sessionId);
    return { status: 204, headers: { 'Set-Cookie': clearSession } };
  },
});

/** `POST /admin/sign-in-links` */
export const createSignInLinkRoute = route({
  operationId: 'adminCreateSignInLink',
  method: 'POST',
  path: '/admin/sign-in-links',
  summary: 'Create a link that signs in at the dashboard once, as the operator or a user',
  auth: 'admin',
  proof: true,
  noStore: true,
  body: NewSignInLink,
  bodyOptional: true,
  responses: { 201: { description: 'The link, shown this once', schema: SignInLink } },
  errors: [404],
  async handle(deps: { clock: Clock; db: Db }, { body, audit }) {
    audit({ target: body.userID === undefined ? 'session:operator' : `user:${body.userID}` });
    const { path, expiresAtUs } = await createSignInLink(deps, body.userID ?? null);
    return { status: 201, body: { path, expiresAt: formatTime(expiresAtUs) } };
  },
});
