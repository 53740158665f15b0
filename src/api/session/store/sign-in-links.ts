import type { Db } from '../../database/db.ts';
import type { SignInLinkRecord } from '../record.ts';

/** Writes a new link that signs in. */
export async function insertSignInLink(db: Db, link: SignInLinkRecord): Promise<void> {
  await db
    .insertInto('sign_in_links')
    .values({
      digest: link.digest,
      user_id: link.userId,
      is_operator: link.isOperator ? 1 : 0,
      expires_at_us: link.expiresAtUs,
    })
    .execute();
}

/** Removes the link with this digest and answers it, expired or not: of two concurrent requests, one gets it. */
export async function takeSignInLink(db: Db, digest: string): Promise<SignInLinkRecord | null> {
  const row = await db.deleteFrom('sign_in_links').where('digest', '=', digest).returningAll().executeTakeFirst();
  return row
    ? { digest, userId: row.user_id, isOperator: row.is_operator === 1, expiresAtUs: row.expires_at_us }
    : null;
}

/** Forgets links that expired before `beforeUs`. */
export async function pruneSignInLinks(db: Db, beforeUs: number): Promise<void> {
  await db.deleteFrom('sign_in_links').where('expires_at_us', '<', beforeUs).execute();
}

/** Forgets the links that sign a user in. */
export async function deleteSignInLinksOf(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('sign_in_links').where('user_id', '=', userId).execute();
}
