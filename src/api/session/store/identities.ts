import { userOfRow } from '../../team/store/user.ts';
import type { Db } from '../../database/db.ts';
import type { UserRecord } from '../../team/record.ts';

/** An identity at an identity provider. */
type OutsideIdentity = { issuer: string; subject: string };

/** The account of an identity; null where it has none. */
export async function findByIdentity(db: Db, { issuer, subject }: OutsideIdentity): Promise<UserRecord | null> {
  const row = await db
    .selectFrom('user_identities')
    .innerJoin('users', 'users.user_id', 'user_identities.user_id')
    .selectAll('users')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return row ? userOfRow(row) : null;
}

/** Joins an identity with an account. Changes nothing if it is joined with one already. */
export async function insertIdentity(
  db: Db,
  { issuer, subject }: OutsideIdentity,
  { userId, nowUs }: { userId: string; nowUs: number },
): Promise<void> {
  await db
    .insertInto('user_identities')
    .values({ issuer, subject, user_id: userId, created_at_us: nowUs })
    .onConflict(conflict => conflict.columns(['issuer', 'subject']).doNothing())
    .execute();
}
