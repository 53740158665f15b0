import type { CreateTableBuilder, Kysely } from 'kysely';

/** Teams, users, and their credentials and secrets. */
export async function createTeamTables(db: Kysely<unknown>): Promise<void> {
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
  await db.schema
    .createTable('secrets')
    .addColumn('secret_id', 'text', column => column.primaryKey())
    .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('current_version', 'bigint', column => column.notNull())
    .addColumn('sealed_value', 'text', column => column.notNull())
    .addColumn('metadata_json', 'text', column => column.notNull())
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addColumn('updated_at_us', 'bigint', column => column.notNull())
    .addUniqueConstraint('secrets_name', ['team_id', 'name'])
    .execute();
  await db.schema
    .createIndex('secrets_by_team')
    .on('secrets')
    .columns(['team_id', 'created_at_us', 'secret_id'])
    .execute();
}

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
