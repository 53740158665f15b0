import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * What another machine needs to go on with builds: their plans, the outcomes of steps, memory in the store. Also where
 * sandboxes were before, and which of their logs are in the store.
 */
export const buildSteps: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('builds').addColumn('sealed_plan', 'text').execute();
    await db.schema
      .alterTable('builds')
      .addColumn('nodes_lost', 'integer', column => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .alterTable('builds')
      .addColumn('log_offset', 'integer', column => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .alterTable('builds')
      .addColumn('memory_stored', 'integer', column => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .createTable('build_steps')
      // No foreign key: its check would wait for whoever holds the team's row. Unused rows are pruned.
      .addColumn('team_id', 'text', column => column.notNull())
      .addColumn('step_key', 'text', column => column.notNull())
      .addColumn('layer', 'text')
      .addColumn('used_at_us', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('build_steps_pk', ['team_id', 'step_key'])
      .execute();
    await db.schema.createIndex('build_steps_by_use').on('build_steps').column('used_at_us').execute();
    await db.schema
      .createTable('sandbox_homes')
      .addColumn('sandbox_id', 'text', column => column.notNull())
      .addColumn('node_id', 'text', column => column.notNull())
      .addColumn('left_at_us', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('sandbox_homes_pk', ['sandbox_id', 'node_id'])
      .execute();
    await db.schema
      .alterTable('past_sandboxes')
      .addColumn('logs_stored', 'integer', column => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .createIndex('past_sandboxes_without_logs')
      .on('past_sandboxes')
      .columns(['node_id', 'ended_at_us'])
      .where('logs_stored' as never, '=', 0)
      .execute();
  },
};
