import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Keys by which clients repeat a create. */
export const idempotencyKeys: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('idempotency_keys')
      .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id'))
      .addColumn('idempotency_key', 'text', column => column.notNull())
      .addColumn('request_digest', 'text', column => column.notNull())
      .addColumn('sandbox_id', 'text', column => column.notNull())
      .addColumn('answer_json', 'text', column => column.notNull())
      .addColumn('answered', 'integer', column => column.notNull())
      .addColumn('created_at_us', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('idempotency_keys_pk', ['team_id', 'idempotency_key'])
      .execute();
    await db.schema.createIndex('idempotency_keys_by_time').on('idempotency_keys').column('created_at_us').execute();
  },
};
