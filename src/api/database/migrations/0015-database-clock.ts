import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** How far the database's clock is known to be wrong. */
export const databaseClock: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('database_clock')
      .addColumn('place', 'integer', column => column.primaryKey())
      .addColumn('correction_us', 'bigint', column => column.notNull())
      .addColumn('revision', 'integer', column => column.notNull())
      .execute();
  },
};
