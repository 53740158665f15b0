import { AtollError } from '../../../base/error.ts';
import { sha256Hex } from '../../../base/crypto/secret.ts';
import type { SessionProof, SignIn } from '../../../protocol/api/session.ts';
import { digestOf } from '../../credential/rules/credential.ts';
import type { RateLimiter } from '../../credential/rules/rate-limit.ts';
import type { Accounts } from '../../team/rules/provision-team.ts';
import { findPassword, findUsers } from '../../team/store/user.ts';
import type { SessionRecord } from '../record.ts';
import { setProven } from '../store/sessions.ts';
import { takeSignInLink } from '../store/sign-in-links.ts';
import { beginSession } from './begin.ts';
import type { Begun, From, Who } from './begin.ts';
import type { Passwords } from './passwords.ts';

/** Dependencies of finding out who signs in. */
export type SignInDeps = Accounts & { passwords: Passwords; rateLimiter: RateLimiter };

/** Passwords that are tried for one account in a second on average, wherever they come from. */
const triesPerSecond = 0.5;

/** Begins a session. Throws `unauthenticated`, the same for all that is not good, and `rate_limited`. */
export async function signIn(deps: SignInDeps, proof: SignIn, from: From): Promise<Begun> {
  const who = await whoProves(deps, proof);
  if (!who) throw refusal();
  return beginSession(deps, who, from);
}

/**
 * Has a session prove again whose it is. Throws `unauthenticated` also for a good proof of somebody else, which is used
 * up then, and `rate_limited`.
 */
export async function proveAgain(deps: SignInDeps, session: SessionRecord, proof: SessionProof): Promise<void> {
  const user = session.userId === null ? undefined : (await findUsers(deps.db, [session.userId])).get(session.userId);
  const email = user?.email ?? undefined;
  const who = await whoProves(deps, { ...proof, ...(email !== undefined && { email }) });
  if (!who || who.userId !== session.userId) throw refusal();
  await setProven(deps.db, session.sessionId, deps.clock());
  deps.credentials.clear();
}

const refusal = () =>
  new AtollError(
    'unauthenticated',
    'That does not sign in: a link works once and for 15 minutes, `atoll dashboard` prints another; an access ' +
      'token is listed by `atoll token list`; a password goes with the e-mail address of its account',
  );

async function whoProves(deps: SignInDeps, proof: SignIn): Promise<Who | null> {
  const { code, accessToken, email, password } = proof;
  if (code !== undefined) return byCode(deps, code);
  if (accessToken !== undefined) return byToken(deps, accessToken);
  return email === undefined || password === undefined ? null : byPassword(deps, email, password);
}

async function byCode({ db, clock }: Accounts, code: string): Promise<Who | null> {
  const link = await takeSignInLink(db, sha256Hex(code));
  if (!link || clock() >= link.expiresAtUs) return null;
  if (link.userId === null) return { userId: null, isOperator: link.isOperator };
  const user = (await findUsers(db, [link.userId])).get(link.userId);
  return user ? { userId: user.userId, isOperator: user.isOperator } : null;
}

async function byToken({ credentials }: Accounts, accessToken: string): Promise<Who | null> {
  const digest = digestOf('accessToken', accessToken.trim());
  const token = digest === null ? null : await credentials.accessToken(digest);
  // Programs hold tokens: they make no operator.
  return token && { userId: token.user.userId, isOperator: false };
}

/** As long and as often for an account that does not exist as for one that does: nobody learns which there are. */
async function byPassword(
  { db, passwords, rateLimiter }: SignInDeps,
  email: string,
  password: string,
): Promise<Who | null> {
  rateLimiter.take(`password ${sha256Hex(email)}`, triesPerSecond, 'passwords for this account');
  const known = await findPassword(db, email);
  const isRight = await passwords.verify(password, known?.hash ?? null);
  return known && isRight ? { userId: known.user.userId, isOperator: known.user.isOperator } : null;
}
