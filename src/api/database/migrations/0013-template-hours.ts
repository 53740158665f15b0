import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** How long sandboxes of each template ran. */
export const templateHours: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('template_hours')
      .addColumn('team_id', 'text', column => column.notNull().references('teams.team_id').onDelete('cascade'))
      .addColumn('hour_seconds', 'bigint', column => column.notNull())
      .addColumn('template_id', 'text', column => column.notNull())
      .addColumn('sandbox_minutes', 'bigint', column => column.notNull())
      .addColumn('counted_seconds', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('template_hours_pk', ['team_id', 'hour_seconds', 'template_id'])
      .execute();
    await db.schema.createIndex('template_hours_by_time').on('template_hours').column('hour_seconds').execute();
  },
};
