import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** What a team's pauses survive by default. */
export const pauseDefault: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('teams')
      .addColumn('pause_durability', 'text', column => column.notNull().defaultTo('node'))
      .execute();
  },
};
