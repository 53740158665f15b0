import type { Kysely } from 'kysely';

/** The operator's tables: the installation, its machines, who changed what, and what teams ran each minute. */
export async function createOperatorTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('installation')
    .addColumn('installation_id', 'text', column => column.primaryKey())
    .addColumn('seed_digest', 'text', column => column.notNull())
    .addColumn('generation', 'bigint', column => column.notNull())
    .addColumn('accepted_at_us', 'bigint')
    .execute();
  await db.schema
    .createTable('nodes')
    .addColumn('node_id', 'text', column => column.primaryKey())
    .addColumn('status', 'text', column => column.notNull())
    .addColumn('status_changed_at_us', 'bigint', column => column.notNull())
    .execute();
  await db.schema
    .createTable('audit_log')
    .addColumn('entry_id', 'text', column => column.primaryKey())
    .addColumn('at_us', 'bigint', column => column.notNull())
    .addColumn('operation', 'text', column => column.notNull())
    .addColumn('target', 'text', column => column.notNull())
    .addColumn('actor_kind', 'text', column => column.notNull())
    .addColumn('actor_id', 'text')
    .addColumn('team_id', 'text')
    .addColumn('address', 'text', column => column.notNull())
    .addColumn('status', 'integer', column => column.notNull())
    .addColumn('before_json', 'text')
    .addColumn('after_json', 'text')
    .execute();
  await db.schema.createIndex('audit_log_by_time').on('audit_log').columns(['at_us', 'entry_id']).execute();
  await db.schema
    .createTable('team_metrics')
    .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
    .addColumn('at_seconds', 'bigint', column => column.notNull())
    .addColumn('concurrent', 'integer', column => column.notNull())
    .addColumn('latest', 'integer', column => column.notNull())
    .addColumn('starts', 'integer', column => column.notNull())
    .addPrimaryKeyConstraint('team_metrics_pk', ['team_id', 'at_seconds'])
    .execute();
  await db.schema.createIndex('team_metrics_by_time').on('team_metrics').column('at_seconds').execute();
}
