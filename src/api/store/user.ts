import type { Selectable } from 'kysely';
import type { Db } from './database.ts';
import type { UserTable } from './schema.ts';

export type UserRecord = { userId: string; email: string | null; name: string; createdAtUs: number };

export function userOfRow(row: Selectable<UserTable>): UserRecord {
  return { userId: row.user_id, email: row.email, name: row.name, createdAtUs: row.created_at_us };
}

/** Those of the users that exist, by ID. */
export async function findUsers(db: Db, userIds: readonly string[]): Promise<Map<string, UserRecord>> {
  if (userIds.length === 0) return new Map();
  const rows = await db.selectFrom('users').selectAll().where('user_id', 'in', userIds).execute();
  return new Map(rows.map(row => [row.user_id, userOfRow(row)]));
}
