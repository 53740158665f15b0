import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Where sandboxes were before, and which of their logs are in the store of the cluster. */
export const logs: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('sandbox_homes')
      .addColumn('sandbox_id', 'text', column => column.notNull())
      .addColumn('node_id', 'text', column => column.notNull())
      .addColumn('left_at_us', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('sandbox_homes_pk', ['sandbox_id', 'node_id'])
      .execute();
    await db.schema
      .alterTable('past_sandboxes')
      .addColumn('logs_stored', 'integer', column => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .createIndex('past_sandboxes_without_logs')
      .on('past_sandboxes')
      .columns(['node_id', 'ended_at_us'])
      .where('logs_stored' as never, '=', 0)
      .execute();
  },
};
