import type { Kysely } from 'kysely';

/** Sandboxes, the tables to find them by, and the owners of sandboxes that are gone. */
export async function createSandboxTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sandboxes')
    .addColumn('sandbox_id', 'text', column => column.primaryKey())
    .addColumn('execution_id', 'text', column => column.notNull())
    .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id'))
    .addColumn('node_id', 'text', column => column.notNull())
    .addColumn('state', 'text', column => column.notNull())
    // No foreign keys: a template may be deleted while sandboxes made from it are still ending.
    .addColumn('template_id', 'text', column => column.notNull())
    .addColumn('build_id', 'text', column => column.notNull())
    .addColumn('alias', 'text')
    .addColumn('agent_version', 'text', column => column.notNull())
    .addColumn('cpu_count', 'integer', column => column.notNull())
    .addColumn('memory_mib', 'integer', column => column.notNull())
    .addColumn('disk_mib', 'integer', column => column.notNull())
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addColumn('started_at_us', 'bigint', column => column.notNull())
    .addColumn('end_at_us', 'bigint', column => column.notNull())
    .addColumn('timeout_seconds', 'integer', column => column.notNull())
    .addColumn('secure', 'integer', column => column.notNull())
    .addColumn('auto_pause', 'integer', column => column.notNull())
    .addColumn('auto_pause_memory', 'integer', column => column.notNull())
    .addColumn('auto_resume', 'integer', column => column.notNull())
    .addColumn('allow_internet_access', 'integer')
    .addColumn('network_json', 'text')
    .addColumn('metadata_json', 'text')
    .addColumn('env_vars_json', 'text', column => column.notNull())
    .addColumn('mcp_json', 'text')
    .addColumn('iam_json', 'text')
    .addColumn('volume_mounts_json', 'text', column => column.notNull())
    .addColumn('kept', 'text')
    .addColumn('next_execution_id', 'text')
    .addColumn('replica_id', 'text')
    .execute();
  await db.schema
    .createIndex('sandboxes_by_team')
    .on('sandboxes')
    .columns(['team_id', 'started_at_us', 'sandbox_id'])
    .execute();
  await db.schema.createIndex('sandboxes_by_end').on('sandboxes').columns(['state', 'end_at_us']).execute();
  await db.schema
    .createTable('sandbox_labels')
    .addColumn('sandbox_id', 'text', column => column.notNull().references('sandboxes.sandbox_id').onDelete('cascade'))
    .addColumn('pair_digest', 'text', column => column.notNull())
    .addPrimaryKeyConstraint('sandbox_labels_pk', ['pair_digest', 'sandbox_id'])
    .execute();
  await db.schema.createIndex('sandbox_labels_by_sandbox').on('sandbox_labels').column('sandbox_id').execute();
  // Each create counts how many places of its limit a team takes: from the index alone, however many sandboxes are
  // paused.
  await db.schema.createIndex('sandboxes_by_state').on('sandboxes').columns(['team_id', 'state']).execute();
  await db.schema
    .createTable('past_sandboxes')
    .addColumn('sandbox_id', 'text', column => column.primaryKey())
    .addColumn('team_id', 'text', column => column.notNull())
    .addColumn('node_id', 'text', column => column.notNull())
    .addColumn('ended_at_us', 'bigint', column => column.notNull())
    .execute();
  await db.schema.createIndex('past_sandboxes_by_end').on('past_sandboxes').column('ended_at_us').execute();
}
