import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Keys with which clients repeat requests that make something other than a sandbox. */
export const repeatedRequests: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('repeated_requests')
      // No foreign key: its check would wait for whoever holds the team's row. Old ones are pruned.
      .addColumn('team_id', 'text', column => column.notNull())
      .addColumn('operation', 'text', column => column.notNull())
      .addColumn('idempotency_key', 'text', column => column.notNull())
      .addColumn('request_digest', 'text', column => column.notNull())
      .addColumn('replica_id', 'text', column => column.notNull())
      .addColumn('sealed_answer', 'text')
      .addColumn('created_at_us', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('repeated_requests_pk', ['team_id', 'operation', 'idempotency_key'])
      .execute();
    await db.schema.createIndex('repeated_requests_by_time').on('repeated_requests').column('created_at_us').execute();
    await db.schema
      .createIndex('repeated_requests_by_team')
      .on('repeated_requests')
      .columns(['team_id', 'created_at_us', 'idempotency_key'])
      .execute();
  },
};
