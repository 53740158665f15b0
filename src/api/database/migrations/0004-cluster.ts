import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * Machines that join by themselves: the cluster's authority, invitations, each machine's last report, who builds what.
 */
export const cluster: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('cluster_authority')
      .addColumn('place', 'integer', column => column.primaryKey())
      .addColumn('certificate', 'text', column => column.notNull())
      .addColumn('sealed_key', 'text', column => column.notNull())
      .execute();
    await db.schema
      .createTable('cluster_invites')
      .addColumn('token_id', 'text', column => column.primaryKey())
      .addColumn('sealed_key', 'text', column => column.notNull())
      .addColumn('expires_at_us', 'bigint', column => column.notNull())
      .execute();
    await db.schema
      .createTable('cluster_nodes')
      .addColumn('node_id', 'text', column => column.primaryKey())
      .addColumn('address', 'text', column => column.notNull())
      .addColumn('certificates_json', 'text', column => column.notNull())
      .addColumn('renew_at_us', 'bigint', column => column.notNull())
      .addColumn('joined_at_us', 'bigint', column => column.notNull())
      .addColumn('lease_until_us', 'bigint')
      .addColumn('given_up', 'integer', column => column.notNull())
      .addColumn('boot_id', 'text')
      .addColumn('info_json', 'text')
      .execute();
    await db.schema.alterTable('builds').addColumn('node_id', 'text').execute();
    await db.schema.createIndex('sandboxes_by_node').on('sandboxes').columns(['node_id', 'state']).execute();
  },
};
