import { AtollError } from '../../../base/error.ts';
import { newUuid, isUuid } from '../../../base/id.ts';
import { deleteAccessToken, insertAccessToken } from '../store/access-token.ts';
import { newCredential } from './credential.ts';
import type { AccessTokenRecord } from '../record.ts';
import type { UserRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { CredentialCache } from './cache.ts';

/** A new access token of a user. `text` is the token itself: it is shown now or never. */
export async function createAccessToken(
  { clock, db }: { clock: Clock; db: Db },
  user: UserRecord,
  name: string,
): Promise<{ token: AccessTokenRecord; text: string }> {
  const { text, record } = newCredential('accessToken', name, clock());
  const token = { ...record, tokenId: newUuid(), userId: user.userId };
  await insertAccessToken(db, token);
  return { token, text };
}

/** Revokes a token: the next request with it is refused. Throws `not_found`, `invalid` for a text that is no ID. */
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
