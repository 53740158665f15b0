import { PostgresAdapter, sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Updates that decide who is let in, besides those that the first release reports. */
const watched: Record<string, string> = { users: 'is_operator, password_hash', sessions: 'proven_at_us' };

/** Roles of members, invitations, passwords, and when a session last proved whose it is. */
export const people: Migration = {
  async up(db: Kysely<unknown>) {
    // Before there were roles, members could do everything.
    await db.schema
      .alterTable('team_members')
      .addColumn('role', 'text', column => column.notNull().defaultTo('admin'))
      .execute();
    await db.schema
      .alterTable('users')
      .addColumn('is_operator', 'integer', column => column.notNull().defaultTo(0))
      .execute();
    await db.schema.alterTable('users').addColumn('password_hash', 'text').execute();
    await db.schema
      .alterTable('sessions')
      .addColumn('proven_at_us', 'bigint', column => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .createTable('invitations')
      .addColumn('invitation_id', 'text', column => column.primaryKey())
      .addColumn('digest', 'text', column => column.notNull().unique())
      .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
      .addColumn('role', 'text', column => column.notNull())
      .addColumn('note', 'text', column => column.notNull())
      .addColumn('created_at_us', 'bigint', column => column.notNull())
      .addColumn('expires_at_us', 'bigint', column => column.notNull())
      .execute();
    await db.schema.createIndex('invitations_by_team').on('invitations').column('team_id').execute();
    if (!(db.getExecutor().adapter instanceof PostgresAdapter)) return;
    for (const [table, columns] of Object.entries(watched)) {
      await sql`
        create trigger tell_change_of_person after update of ${sql.raw(columns)} on ${sql.table(table)}
        for each statement execute function tell_credential_change()
      `.execute(db);
    }
  },
};
