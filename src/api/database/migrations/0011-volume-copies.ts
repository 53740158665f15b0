import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Volumes that move from machine to machine, and their copies in the store; an index by the next machine. */
export const volumeCopies: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('volumes').addColumn('moving_to', 'text').execute();
    await db.schema.alterTable('volumes').addColumn('replica_id', 'text').execute();
    await db.schema.alterTable('volumes').addColumn('copy_id', 'text').execute();
    await db.schema.alterTable('volumes').addColumn('copied_at_us', 'bigint').execute();
    await db.schema.alterTable('volumes').addColumn('copied_change_us', 'bigint').execute();
    // Each machine is compared with its own rows only, however many others there are.
    await db.schema
      .createIndex('sandboxes_by_next_node')
      .on('sandboxes')
      .column('next_node_id')
      .where('next_node_id' as never, 'is not', null)
      .execute();
  },
};
