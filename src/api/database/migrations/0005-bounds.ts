import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Indexes for what limits a team's rows: the oldest of its history, and its audit log. */
export const bounds: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createIndex('audit_log_by_team')
      .on('audit_log')
      .columns(['team_id', 'at_us', 'entry_id'])
      .execute();
    await db.schema
      .createIndex('past_sandboxes_by_team')
      .on('past_sandboxes')
      .columns(['team_id', 'ended_at_us', 'sandbox_id'])
      .execute();
    await db.schema
      .createIndex('idempotency_keys_by_team')
      .on('idempotency_keys')
      .columns(['team_id', 'created_at_us', 'idempotency_key'])
      .execute();
  },
};
