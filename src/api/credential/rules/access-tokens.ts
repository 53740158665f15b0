import { AtollError } from '../../../base/error.ts';
import { newUuid, isUuid } from '../../../base/id.ts';
import { deleteAccessToken, insertAccessToken, listAccessTokens } from '../store/access-token.ts';
import { lockUser } from '../../team/store/lock.ts';
import { newCredential } from './credential.ts';
import { requireHeld } from './held.ts';
import type { HeldCredential } from '../caller.ts';
import type { AccessTokenRecord } from '../record.ts';
import type { UserRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { CredentialCache } from './cache.ts';

/** Access tokens that a user may have. */
const accessTokensMax = 200;

/**
 * Makes an access token for a user. `text` is the token itself, which is shown only now. `held`: the credential of the
 * user's request. Throws `rate_limited` where the user has `tokensMax`, `unauthenticated` where `held` has ended.
 */
export async function createAccessToken(
  { clock, db }: { clock: Clock; db: Db },
  user: UserRecord,
  name: string,
  { held, tokensMax = accessTokensMax }: { held?: HeldCredential; tokensMax?: number } = {},
): Promise<{ token: AccessTokenRecord; text: string }> {
  const { text, record } = newCredential('accessToken', name, clock());
  const token = { ...record, tokenId: newUuid(), userId: user.userId };
  await inTransaction(db, async db => {
    await lockUser(db, user.userId);
    if (held) await requireHeld(db, held);
    if ((await listAccessTokens(db, user.userId)).length >= tokensMax)
      throw new AtollError(
        'rate_limited',
        `The user has ${tokensMax} access tokens, which is the most (accessTokensMax): delete one first`,
      );
    await insertAccessToken(db, token);
  });
  return { token, text };
}

/** Revokes a token: the next request with it is refused. Throws `not_found`, `invalid` for a text that is not an ID. */
export async function revokeAccessToken(
  { credentials, db }: { credentials: CredentialCache; db: Db },
  user: UserRecord,
  tokenId: string,
): Promise<void> {
  if (!isUuid(tokenId))
    throw new AtollError('invalid', `accessTokenID: "${tokenId}" is not the ID of a token (a UUID)`);
  const removed = await deleteAccessToken(db, user.userId, tokenId);
  credentials.clear();
  if (!removed) throw new AtollError('not_found', `Access token "${tokenId}" was not found`);
}
