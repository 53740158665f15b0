import { AtollError } from '../../../base/error.ts';
import { sha256Hex } from '../../../base/crypto/secret.ts';
import type { SessionProof, SignIn } from '../../../protocol/api/session.ts';
import { digestOf } from '../../credential/rules/credential.ts';
import type { RateLimiter } from '../../credential/rules/rate-limit.ts';
import { findAccessToken } from '../../credential/store/access-token.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { Accounts } from '../../team/rules/provision-team.ts';
import { lockUser } from '../../team/store/lock.ts';
import { findPassword, findUsers } from '../../team/store/user.ts';
import type { SessionRecord } from '../record.ts';
import { setProven } from '../store/sessions.ts';
import { takeSignInLink } from '../store/sign-in-links.ts';
import { beginSession } from './begin.ts';
import type { Begun, From, Who } from './begin.ts';
import type { Passwords } from './passwords.ts';

/** Dependencies of finding out who signs in. */
export type SignInDeps = Accounts & { passwords: Passwords; signInAttempts: RateLimiter };

/** A person with a proof, and whether the proof is still valid. */
type Proven = Who & { holds: (db: Db) => Promise<boolean> };

/** Attempts at passwords for one account per second on average, wherever they come from. */
const triesPerSecond = 0.5;

/** Begins a session. Throws `unauthenticated`, the same for every invalid proof, and `rate_limited`. */
export async function signIn(deps: SignInDeps, proof: SignIn, from: From): Promise<Begun> {
  const proven = await whoProves(deps, proof);
  if (!proven) throw refusal();
  return inTransaction(deps.db, async db => {
    const { userId, isOperator, holds } = proven;
    if (userId !== null) await lockUser(db, userId);
    // Checking a password takes long: one that was changed meanwhile begins no session.
    if (!(await holds(db))) throw refusal();
    return beginSession({ ...deps, db }, { userId, isOperator }, from);
  });
}

/**
 * Lets a session prove again whose it is. Throws `unauthenticated`, even for somebody else's valid proof, which is used
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

async function whoProves(deps: SignInDeps, proof: SignIn): Promise<Proven | null> {
  const { code, accessToken, email, password } = proof;
  if (code !== undefined) return byCode(deps, code);
  if (accessToken !== undefined) return byToken(deps, accessToken);
  return email === undefined || password === undefined ? null : byPassword(deps, email, password);
}

async function byCode({ db, clock }: Accounts, code: string): Promise<Proven | null> {
  const link = await takeSignInLink(db, sha256Hex(code));
  if (!link || clock() >= link.expiresAtUs) return null;
  const holds = async () => true; // it was used up just now
  if (link.userId === null) return { userId: null, isOperator: link.isOperator, holds };
  const user = (await findUsers(db, [link.userId])).get(link.userId);
  return user ? { userId: user.userId, isOperator: user.isOperator, holds } : null;
}

async function byToken({ credentials }: Accounts, accessToken: string): Promise<Proven | null> {
  const digest = digestOf('accessToken', accessToken.trim());
  const token = digest === null ? null : await credentials.accessToken(digest);
  // Programs hold tokens, so tokens give no operator's rights.
  if (!token || digest === null) return null;
  const holds = async (db: Db) => (await findAccessToken(db, digest)) !== null;
  return { userId: token.user.userId, isOperator: false, holds };
}

/**
 * Takes as long, and as often, for an account that does not exist as for one that does: nobody learns which accounts
 * exist.
 */
async function byPassword(
  { db, passwords, signInAttempts }: SignInDeps,
  email: string,
  password: string,
): Promise<Proven | null> {
  signInAttempts.take(`password ${sha256Hex(email)}`, triesPerSecond, 'passwords for this account');
  const known = await findPassword(db, email);
  const isRight = await passwords.verify(password, known?.hash ?? null);
  if (!known || !isRight) return null;
  const holds = async (db: Db) => (await findPassword(db, email))?.hash === known.hash;
  return { userId: known.user.userId, isOperator: known.user.isOperator, holds };
}
