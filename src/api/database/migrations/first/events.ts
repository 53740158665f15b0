import { PostgresAdapter } from 'kysely';
import type { Kysely } from 'kysely';

/** What happened, whom to notify of it, and how that went. */
export async function createEventTables(db: Kysely<unknown>): Promise<void> {
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  await db.schema
    .createTable('events')
    // SQLite's own form of the same.
    .addColumn('sequence', isPostgres ? 'bigserial' : 'integer', column =>
      isPostgres ? column.primaryKey() : column.primaryKey().autoIncrement(),
    )
    .addColumn('event_id', 'text', column => column.notNull().unique())
    // No foreign key: its check would wait for whoever holds the team's row, and two transactions could each wait for
    // the sandbox that the other one has.
    .addColumn('team_id', 'text', column => column.notNull())
    .addColumn('type', 'text', column => column.notNull())
    .addColumn('subject_kind', 'text', column => column.notNull())
    .addColumn('subject_id', 'text', column => column.notNull())
    .addColumn('at_us', 'bigint', column => column.notNull())
    .addColumn('body_json', 'text', column => column.notNull())
    .execute();
  await db.schema.createIndex('events_by_team').on('events').columns(['team_id', 'sequence']).execute();
  await db.schema
    .createIndex('events_by_subject')
    .on('events')
    .columns(['subject_kind', 'subject_id', 'sequence'])
    .execute();
  await db.schema.createIndex('events_by_time').on('events').column('at_us').execute();
  await db.schema
    .createTable('webhooks')
    .addColumn('webhook_id', 'text', column => column.primaryKey())
    .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('url', 'text', column => column.notNull())
    .addColumn('enabled', 'integer', column => column.notNull())
    .addColumn('types_text', 'text', column => column.notNull())
    .addColumn('sealed_secret', 'text', column => column.notNull())
    .addColumn('failing', 'integer', column => column.notNull())
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addColumn('updated_at_us', 'bigint', column => column.notNull())
    .execute();
  await db.schema.createIndex('webhooks_by_team').on('webhooks').column('team_id').execute();
  await db.schema
    .createTable('webhook_deliveries')
    .addColumn('webhook_id', 'text', column => column.notNull().references('webhooks.webhook_id').onDelete('cascade'))
    .addColumn('sequence', 'bigint', column => column.notNull().references('events.sequence').onDelete('cascade'))
    .addColumn('subject', 'text', column => column.notNull())
    .addColumn('state', 'text', column => column.notNull())
    .addColumn('claimed', 'integer', column => column.notNull())
    .addColumn('attempts', 'integer', column => column.notNull())
    .addColumn('due_at_us', 'bigint', column => column.notNull())
    .addColumn('last_status', 'integer')
    .addColumn('last_error', 'text')
    .addColumn('finished_at_us', 'bigint')
    .addPrimaryKeyConstraint('webhook_deliveries_pk', ['webhook_id', 'sequence'])
    .execute();
  await db.schema
    .createIndex('webhook_deliveries_due')
    .on('webhook_deliveries')
    .columns(['webhook_id', 'state', 'due_at_us'])
    .execute();
  await db.schema
    .createIndex('webhook_deliveries_in_order')
    .on('webhook_deliveries')
    .columns(['webhook_id', 'subject', 'state', 'sequence'])
    .execute();
  await db.schema.createIndex('webhook_deliveries_by_event').on('webhook_deliveries').column('sequence').execute();
}
