import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Secrets of teams, sealed with a key that is not in the database. */
export const secrets: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('secrets')
      .addColumn('secret_id', 'text', column => column.primaryKey())
      .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
      .addColumn('name', 'text', column => column.notNull())
      .addColumn('current_version', 'bigint', column => column.notNull())
      .addColumn('sealed_value', 'text', column => column.notNull())
      .addColumn('metadata_json', 'text', column => column.notNull())
      .addColumn('created_at_us', 'bigint', column => column.notNull())
      .addColumn('updated_at_us', 'bigint', column => column.notNull())
      .addUniqueConstraint('secrets_name', ['team_id', 'name'])
      .execute();
  },
};
