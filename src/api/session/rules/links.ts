import { AtollError } from '../../../base/error.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { randomHex, sha256Hex } from '../../../base/crypto/secret.ts';
import { signInCodeCharacters } from '../../../protocol/api/session.ts';
import { findUsers } from '../../team/store/user.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import { insertSignInLink, pruneSignInLinks } from '../store/sign-in-links.ts';

/** How long a link can sign in, seconds. */
const linkSeconds = 15 * 60;

/**
 * A link that signs in once: the user, or the operator without an account where `userId` is null. The code is in the
 * fragment, which no server and no log sees. Throws `not_found` for an unknown user.
 */
export async function createSignInLink(
  { clock, db }: { clock: Clock; db: Db },
  userId: string | null,
): Promise<{ path: string; expiresAtUs: number }> {
  if (userId !== null && !(await findUsers(db, [userId])).has(userId))
    throw new AtollError('not_found', `userID: there is no user ${userId}`);
  const code = randomHex(signInCodeCharacters / 2);
  const nowUs = clock();
  const expiresAtUs = nowUs + linkSeconds * microsPerSecond;
  await pruneSignInLinks(db, nowUs);
  await insertSignInLink(db, { digest: sha256Hex(code), userId, isOperator: userId === null, expiresAtUs });
  return { path: `/dashboard/signin#${code}`, expiresAtUs };
}
