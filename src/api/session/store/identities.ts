import { userOfRow } from '../../team/store/user.ts';
import type { Db } from '../../database/db.ts';
import type { UserRecord } from '../../team/record.ts';

/** Somebody at an identity provider: where, and who there. */
type OutsideIdentity = { issuer: string; subject: string };

/** Whose account an identity is of; null where it is of none. */
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

/** Joins an identity with an account. Nothing is changed where it is joined with one already. */
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
