import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { deleteAccessToken, insertAccessToken } from '../store/access-token.ts';
import type { AccessTokenRecord } from '../store/access-token.ts';
import type { UserRecord } from '../store/user.ts';
import { newCredential } from './credential.ts';
import type { Accounts } from './provision-team.ts';
import { isUuid } from './template-reference.ts';

/** A new access token of a user. `text` is the token itself: it is shown now or never. */
export async function createAccessToken(
  app: Accounts,
  user: UserRecord,
  name: string,
): Promise<{ token: AccessTokenRecord; text: string }> {
  const { text, record } = newCredential('accessToken', name, app.clock());
  const token = { ...record, tokenId: newUuid(), userId: user.userId };
  await insertAccessToken(app.store.db, token);
  return { token, text };
}

/** Revokes a token: the next request with it is refused. Throws `not_found`, `invalid` for a text that is no ID. */
export async function revokeAccessToken(app: Accounts, user: UserRecord, tokenId: string): Promise<void> {
  if (!isUuid(tokenId)) throw new AtollError('invalid', `accessTokenID: "${tokenId}" is not the ID of a token (a UUID)`);
  const removed = await deleteAccessToken(app.store.db, user.userId, tokenId);
  app.credentials.clear();
  if (!removed) throw new AtollError('not_found', `Access token "${tokenId}" was not found`);
}
