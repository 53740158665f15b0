import type { Db } from '../../database/db.ts';
import { userOfRow } from '../../team/store/user.ts';
import { mapperOf } from '../../record/column.ts';
import { accessTokenColumns, type AccessTokenRecord } from '../record.ts';
import type { UserRecord } from '../../team/record.ts';

const { recordOf, rowOf } = mapperOf(accessTokenColumns);

/** Writes a new access token. */
export async function insertAccessToken(db: Db, token: AccessTokenRecord): Promise<void> {
  await db.insertInto('access_tokens').values(rowOf(token)).execute();
}

/** The token with this digest and its user. */
export async function findAccessToken(db: Db, digest: string): Promise<{ tokenId: string; user: UserRecord } | null> {
  const row = await db
    .selectFrom('access_tokens')
    .innerJoin('users', 'users.user_id', 'access_tokens.user_id')
    .selectAll('users')
    .select('token_id')
    .where('digest', '=', digest)
    .executeTakeFirst();
  return row ? { tokenId: row.token_id, user: userOfRow(row) } : null;
}

/** A user's tokens, the oldest first. */
export async function listAccessTokens(db: Db, userId: string): Promise<AccessTokenRecord[]> {
  const rows = await db
    .selectFrom('access_tokens')
    .selectAll()
    .where('user_id', '=', userId)
    .orderBy('created_at_us')
    .orderBy('token_id')
    .execute();
  return rows.map(recordOf);
}

/** Removes a user's token. False where there is none with this ID. */
export async function deleteAccessToken(db: Db, userId: string, tokenId: string): Promise<boolean> {
  const result = await db
    .deleteFrom('access_tokens')
    .where('user_id', '=', userId)
    .where('token_id', '=', tokenId)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Removes all tokens of a user. */
export async function deleteAccessTokensOf(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('access_tokens').where('user_id', '=', userId).execute();
}
