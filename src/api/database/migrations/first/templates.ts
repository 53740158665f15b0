import type { Kysely } from 'kysely';

/** Templates with their names, builds, tags and logs of builds. */
export async function createTemplateTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('templates')
    .addColumn('template_id', 'text', column => column.primaryKey())
    .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id'))
    .addColumn('kind', 'text', column => column.notNull())
    .addColumn('public', 'integer', column => column.notNull())
    .addColumn('created_by', 'text', column => column.references('users.user_id').onDelete('set null'))
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addColumn('updated_at_us', 'bigint', column => column.notNull())
    .addColumn('last_spawned_at_us', 'bigint')
    .addColumn('spawn_count', 'bigint', column => column.notNull())
    .addColumn('build_count', 'integer', column => column.notNull())
    .execute();
  await db.schema
    .createIndex('templates_by_team')
    .on('templates')
    .columns(['team_id', 'created_at_us', 'template_id'])
    .execute();
  await db.schema
    .createTable('template_names')
    .addColumn('namespace', 'text', column => column.notNull())
    .addColumn('alias', 'text', column => column.notNull())
    .addColumn('template_id', 'text', column =>
      column.notNull().references('templates.template_id').onDelete('cascade'),
    )
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('template_names_pk', ['namespace', 'alias'])
    .execute();
  await db.schema.createIndex('template_names_by_template').on('template_names').column('template_id').execute();
  await createBuildTables(db);
}

async function createBuildTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('builds')
    .addColumn('build_id', 'text', column => column.primaryKey())
    .addColumn('template_id', 'text', column =>
      column.notNull().references('templates.template_id').onDelete('cascade'),
    )
    .addColumn('status', 'text', column => column.notNull())
    .addColumn('cpu_count', 'integer', column => column.notNull())
    .addColumn('memory_mib', 'integer', column => column.notNull())
    .addColumn('disk_mib', 'integer', column => column.notNull())
    .addColumn('agent_version', 'text')
    .addColumn('layers_json', 'text', column => column.notNull())
    .addColumn('config_json', 'text', column => column.notNull())
    .addColumn('reason_json', 'text')
    .addColumn('request_json', 'text')
    .addColumn('source_sandbox_id', 'text')
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addColumn('updated_at_us', 'bigint', column => column.notNull())
    .addColumn('finished_at_us', 'bigint')
    .addColumn('replica_id', 'text')
    .execute();
  await db.schema
    .createIndex('builds_by_template')
    .on('builds')
    .columns(['template_id', 'created_at_us', 'build_id'])
    .execute();
  await db.schema
    .createTable('build_tags')
    .addColumn('template_id', 'text', column =>
      column.notNull().references('templates.template_id').onDelete('cascade'),
    )
    .addColumn('tag', 'text', column => column.notNull())
    .addColumn('build_id', 'text', column => column.notNull().references('builds.build_id').onDelete('cascade'))
    .addColumn('assigned_at_us', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('build_tags_pk', ['template_id', 'tag', 'build_id'])
    .execute();
  await db.schema.createIndex('builds_by_source').on('builds').column('source_sandbox_id').execute();
  await db.schema.createIndex('builds_by_status').on('builds').column('status').execute();
  await db.schema
    .createTable('build_log')
    .addColumn('build_id', 'text', column => column.notNull().references('builds.build_id').onDelete('cascade'))
    .addColumn('number', 'integer', column => column.notNull())
    .addColumn('timestamp_ms', 'bigint', column => column.notNull())
    .addColumn('level', 'integer', column => column.notNull())
    .addColumn('message', 'text', column => column.notNull())
    .addColumn('step', 'text')
    .addPrimaryKeyConstraint('build_log_pk', ['build_id', 'number'])
    .execute();
}
