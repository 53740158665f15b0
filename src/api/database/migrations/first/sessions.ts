import type { Kysely } from 'kysely';

/** Sessions at the dashboard, and sign-in links. Only digests of both are stored. */
export async function createSessionTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sessions')
    .addColumn('session_id', 'text', column => column.primaryKey())
    // Null: root on the machine, who needs no account.
    .addColumn('user_id', 'text', column => column.references('users.user_id').onDelete('cascade'))
    .addColumn('digest', 'text', column => column.notNull().unique())
    .addColumn('is_operator', 'integer', column => column.notNull())
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addColumn('last_used_at_us', 'bigint', column => column.notNull())
    .addColumn('address', 'text', column => column.notNull())
    .addColumn('user_agent', 'text', column => column.notNull())
    .execute();
  await db.schema.createIndex('sessions_by_user').on('sessions').column('user_id').execute();
  await db.schema
    .createTable('sign_in_links')
    .addColumn('digest', 'text', column => column.primaryKey())
    .addColumn('user_id', 'text', column => column.references('users.user_id').onDelete('cascade'))
    .addColumn('is_operator', 'integer', column => column.notNull())
    .addColumn('expires_at_us', 'bigint', column => column.notNull())
    .execute();
}
