import type { CreateTableBuilder, Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Teams and their credentials, templates with their builds, sandboxes. */
export const first: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('teams')
      .addColumn('team_id', 'text', column => column.primaryKey())
      .addColumn('name', 'text', column => column.notNull())
      .addColumn('slug', 'text', column => column.notNull().unique())
      .addColumn('limits_json', 'text', column => column.notNull())
      .addColumn('banned', 'integer', column => column.notNull())
      .addColumn('blocked', 'integer', column => column.notNull())
      .addColumn('created_at_us', 'bigint', column => column.notNull())
      .execute();
    await db.schema
      .createTable('users')
      .addColumn('user_id', 'text', column => column.primaryKey())
      .addColumn('email', 'text', column => column.unique())
      .addColumn('name', 'text', column => column.notNull())
      .addColumn('created_at_us', 'bigint', column => column.notNull())
      .execute();
    await db.schema
      .createTable('team_members')
      .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
      .addColumn('user_id', 'text', column => column.notNull().references('users.user_id').onDelete('cascade'))
      .addColumn('is_default', 'integer', column => column.notNull())
      .addColumn('created_at_us', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('team_members_pk', ['user_id', 'team_id'])
      .execute();
    await credentialColumns(db.schema.createTable('api_keys').addColumn('key_id', 'text', column => column.primaryKey()))
      .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
      .addColumn('created_by', 'text', column => column.references('users.user_id').onDelete('set null'))
      .execute();
    await db.schema.createIndex('api_keys_by_team').on('api_keys').column('team_id').execute();
    await credentialColumns(
      db.schema.createTable('access_tokens').addColumn('token_id', 'text', column => column.primaryKey()),
    )
      .addColumn('user_id', 'text', column => column.notNull().references('users.user_id').onDelete('cascade'))
      .execute();
    await createTemplateTables(db);
    await createSandboxTables(db);
  },
};

function credentialColumns<T extends string>(table: CreateTableBuilder<T>): CreateTableBuilder<T> {
  return table
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('digest', 'text', column => column.notNull().unique())
    .addColumn('value_length', 'integer', column => column.notNull())
    .addColumn('mask_prefix', 'text', column => column.notNull())
    .addColumn('mask_suffix', 'text', column => column.notNull())
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addColumn('last_used_at_us', 'bigint') as CreateTableBuilder<T>;
}

async function createTemplateTables(db: Kysely<unknown>): Promise<void> {
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
  await db.schema.createIndex('templates_by_team').on('templates').columns(['team_id', 'created_at_us']).execute();
  await db.schema
    .createTable('template_names')
    .addColumn('namespace', 'text', column => column.notNull())
    .addColumn('alias', 'text', column => column.notNull())
    .addColumn('template_id', 'text', column => column.notNull().references('templates.template_id').onDelete('cascade'))
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('template_names_pk', ['namespace', 'alias'])
    .execute();
  await db.schema.createIndex('template_names_by_template').on('template_names').column('template_id').execute();
  await db.schema
    .createTable('builds')
    .addColumn('build_id', 'text', column => column.primaryKey())
    .addColumn('template_id', 'text', column => column.notNull().references('templates.template_id').onDelete('cascade'))
    .addColumn('status', 'text', column => column.notNull())
    .addColumn('cpu_count', 'integer', column => column.notNull())
    .addColumn('memory_mib', 'integer', column => column.notNull())
    .addColumn('disk_mib', 'integer', column => column.notNull())
    .addColumn('agent_version', 'text')
    .addColumn('layers_json', 'text', column => column.notNull())
    .addColumn('config_json', 'text', column => column.notNull())
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addColumn('updated_at_us', 'bigint', column => column.notNull())
    .addColumn('finished_at_us', 'bigint')
    .execute();
  await db.schema.createIndex('builds_by_template').on('builds').columns(['template_id', 'created_at_us']).execute();
  await db.schema
    .createTable('build_tags')
    .addColumn('template_id', 'text', column => column.notNull().references('templates.template_id').onDelete('cascade'))
    .addColumn('tag', 'text', column => column.notNull())
    .addColumn('build_id', 'text', column => column.notNull().references('builds.build_id').onDelete('cascade'))
    .addColumn('assigned_at_us', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('build_tags_pk', ['template_id', 'tag', 'build_id'])
    .execute();
}

async function createSandboxTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sandboxes')
    .addColumn('sandbox_id', 'text', column => column.primaryKey())
    .addColumn('execution_id', 'text', column => column.notNull())
    .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id'))
    .addColumn('node_id', 'text', column => column.notNull())
    .addColumn('state', 'text', column => column.notNull())
    // No foreign keys: a template may go while sandboxes that were made from it still end.
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
}
