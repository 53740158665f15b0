import type { Kysely } from 'kysely';

/** Volumes of teams, the sandboxes that have them, and volumes whose content must be removed. */
export async function createVolumeTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('volumes')
    .addColumn('volume_id', 'text', column => column.primaryKey())
    .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
    .addColumn('node_id', 'text', column => column.notNull())
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('size_mib', 'integer', column => column.notNull())
    .addColumn('created_at_us', 'bigint', column => column.notNull())
    .addUniqueConstraint('volumes_name', ['team_id', 'name'])
    .execute();
  await db.schema
    .createTable('sandbox_volumes')
    .addColumn('sandbox_id', 'text', column => column.notNull().references('sandboxes.sandbox_id').onDelete('cascade'))
    .addColumn('volume_id', 'text', column => column.notNull().references('volumes.volume_id'))
    .addPrimaryKeyConstraint('sandbox_volumes_pair', ['sandbox_id', 'volume_id'])
    .execute();
  await db.schema.createIndex('sandbox_volumes_by_volume').on('sandbox_volumes').column('volume_id').execute();
  await db.schema
    .createTable('volume_removals')
    .addColumn('volume_id', 'text', column => column.primaryKey())
    .addColumn('node_id', 'text', column => column.notNull())
    .addColumn('noted_at_us', 'bigint', column => column.notNull())
    .execute();
}
