import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** What lets another machine go on with builds: their plans, the outcomes of steps, memory in the store. */
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
      // No foreign key: its check would wait for whoever holds the team's row. What is not used is pruned.
      .addColumn('team_id', 'text', column => column.notNull())
      .addColumn('step_key', 'text', column => column.notNull())
      .addColumn('layer', 'text')
      .addColumn('used_at_us', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('build_steps_pk', ['team_id', 'step_key'])
      .execute();
    await db.schema.createIndex('build_steps_by_use').on('build_steps').column('used_at_us').execute();
  },
};
