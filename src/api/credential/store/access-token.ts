import type { Db } from '../../database/db.ts';
import { userOfRow } from '../../team/store/user.ts';
import type { AccessTokenRecord } from '../record.ts';
import type { UserRecord } from '../../team/record.ts';

/** Writes a new access token. */
export async function insertAccessToken(db: Db, token: AccessTokenRecord): Promise<void> {
  await db
    .insertInto('access_tokens')
    .values({
      token_id: token.tokenId,
      user_id: token.userId,
      name: token.name,
      digest: token.digest,
      value_length: token.valueLength,
      mask_prefix: token.maskPrefix,
      mask_suffix: token.maskSuffix,
      created_at_us: token.createdAtUs,
      last_used_at_us: token.lastUsedAtUs,
    })
    .execute();
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
  return rows.map(row => ({
    tokenId: row.token_id,
    userId: row.user_id,
    name: row.name,
    digest: row.digest,
    valueLength: row.value_length,
    maskPrefix: row.mask_prefix,
    maskSuffix: row.mask_suffix,
    createdAtUs: row.created_at_us,
    lastUsedAtUs: row.last_used_at_us,
  }));
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
