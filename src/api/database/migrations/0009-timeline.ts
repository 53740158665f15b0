import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The history of the database that this state was last used in, and when that changed. */
export const timeline: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('database_timeline')
      .addColumn('place', 'integer', column => column.primaryKey())
      .addColumn('system_id', 'text', column => column.notNull())
      .addColumn('timeline', 'bigint', column => column.notNull())
      .addColumn('changed_at_us', 'bigint')
      .execute();
  },
};
