import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The content of a cluster's store, the references to it, and which pauses outlive their machine. */
export const store: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('blob_store')
      .addColumn('place', 'integer', column => column.primaryKey())
      .addColumn('store_id', 'text', column => column.notNull())
      .execute();
    await db.schema
      .createTable('blobs')
      .addColumn('blob_id', 'text', column => column.primaryKey())
      .addColumn('kind', 'text', column => column.notNull())
      .addColumn('name', 'text', column => column.notNull())
      .addColumn('state', 'text', column => column.notNull())
      .addColumn('bytes', 'bigint', column => column.notNull())
      .addColumn('sealed_key', 'text')
      .addColumn('facts_json', 'text')
      .addColumn('replica_id', 'text')
      .addColumn('changed_at_us', 'bigint', column => column.notNull())
      .execute();
    await db.schema
      .createIndex('blobs_by_name')
      .on('blobs')
      .columns(['kind', 'name'])
      .unique()
      .where('state' as never, 'in', ['uploading', 'stored'])
      .execute();
    await db.schema.createIndex('blobs_by_state').on('blobs').columns(['state', 'changed_at_us']).execute();
    await db.schema
      .createTable('blob_refs')
      .addColumn('blob_id', 'text', column => column.notNull().references('blobs.blob_id'))
      .addColumn('owner_kind', 'text', column => column.notNull())
      .addColumn('owner_id', 'text', column => column.notNull())
      .addPrimaryKeyConstraint('blob_refs_pk', ['blob_id', 'owner_kind', 'owner_id'])
      .execute();
    await db.schema.createIndex('blob_refs_by_owner').on('blob_refs').columns(['owner_kind', 'owner_id']).execute();
    await db.schema
      .alterTable('builds')
      .addColumn('layers_stored', 'integer', column => column.notNull().defaultTo(0))
      .execute();
    await db.schema.alterTable('sandboxes').addColumn('durability', 'text').execute();
    await db.schema
      .alterTable('sandboxes')
      .addColumn('auto_pause_durability', 'text', column => column.notNull().defaultTo('node'))
      .execute();
  },
};
