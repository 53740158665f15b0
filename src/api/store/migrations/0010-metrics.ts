import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** How many sandboxes teams have run, a row a minute; and whose the sandboxes were that are gone, for what is kept of them. */
export const metrics: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('team_metrics')
      .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
      .addColumn('at_seconds', 'bigint', column => column.notNull())
      .addColumn('concurrent', 'integer', column => column.notNull())
      .addColumn('latest', 'integer', column => column.notNull())
      .addColumn('starts', 'integer', column => column.notNull())
      .addPrimaryKeyConstraint('team_metrics_pk', ['team_id', 'at_seconds'])
      .execute();
    await db.schema.createIndex('team_metrics_by_time').on('team_metrics').column('at_seconds').execute();
    await db.schema
      .createTable('past_sandboxes')
      .addColumn('sandbox_id', 'text', column => column.primaryKey())
      .addColumn('team_id', 'text', column => column.notNull())
      .addColumn('node_id', 'text', column => column.notNull())
      .addColumn('ended_at_us', 'bigint', column => column.notNull())
      .execute();
    await db.schema.createIndex('past_sandboxes_by_end').on('past_sandboxes').column('ended_at_us').execute();
  },
};
