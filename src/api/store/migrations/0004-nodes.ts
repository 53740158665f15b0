import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** What an operator said of machines. A machine without row is as it is at first: ready. */
export const nodes: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('nodes')
      .addColumn('node_id', 'text', column => column.primaryKey())
      .addColumn('status', 'text', column => column.notNull())
      .addColumn('status_changed_at_us', 'bigint', column => column.notNull())
      .execute();
  },
};
