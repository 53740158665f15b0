import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Whose state this is, and volumes whose content is to go: what is merely unknown is deleted no more. */
export const installation: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('installation')
      .addColumn('installation_id', 'text', column => column.primaryKey())
      .addColumn('seed_digest', 'text', column => column.notNull())
      .addColumn('generation', 'bigint', column => column.notNull())
      .addColumn('accepted_at_us', 'bigint')
      .execute();
    await db.schema
      .createTable('volume_removals')
      .addColumn('volume_id', 'text', column => column.primaryKey())
      .addColumn('node_id', 'text', column => column.notNull())
      .addColumn('noted_at_us', 'bigint', column => column.notNull())
      .execute();
  },
};
