import type { Selectable } from 'kysely';
import type { Db } from '../../database/db.ts';
import type { UserTable } from '../../database/account-tables.ts';
import type { UserRecord } from '../record.ts';

/** The record of a row. */
export function userOfRow(row: Selectable<UserTable>): UserRecord {
  return {
    userId: row.user_id,
    email: row.email,
    name: row.name,
    createdAtUs: row.created_at_us,
    isOperator: row.is_operator === 1,
    hasPassword: row.password_hash !== null,
  };
}

/** The existing ones of these users, by ID. */
export async function findUsers(db: Db, userIds: readonly string[]): Promise<Map<string, UserRecord>> {
  if (userIds.length === 0) return new Map();
  const rows = await db.selectFrom('users').selectAll().where('user_id', 'in', userIds).execute();
  return new Map(rows.map(row => [row.user_id, userOfRow(row)]));
}

/** The user with this e-mail address and a password, with its hash; null where there is none. */
export async function findPassword(db: Db, email: string): Promise<{ user: UserRecord; hash: string } | null> {
  const row = await db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst();
  return row && row.password_hash !== null ? { user: userOfRow(row), hash: row.password_hash } : null;
}

/** Sets the hash of a user's password; null: the user has none. */
export async function setPassword(db: Db, userId: string, hash: string | null): Promise<void> {
  await db.updateTable('users').set({ password_hash: hash }).where('user_id', '=', userId).execute();
}

/** Makes a user an operator, or ends that. */
export async function setOperator(db: Db, userId: string, isOperator: boolean): Promise<void> {
  await db
    .updateTable('users')
    .set({ is_operator: isOperator ? 1 : 0 })
    .where('user_id', '=', userId)
    .execute();
}
