import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Who changed what. */
export const audit: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('audit_log')
      .addColumn('entry_id', 'text', column => column.primaryKey())
      .addColumn('at_us', 'bigint', column => column.notNull())
      .addColumn('operation', 'text', column => column.notNull())
      .addColumn('target', 'text', column => column.notNull())
      .addColumn('actor_kind', 'text', column => column.notNull())
      .addColumn('actor_id', 'text')
      .addColumn('team_id', 'text')
      .addColumn('address', 'text', column => column.notNull())
      .addColumn('status', 'integer', column => column.notNull())
      .addColumn('before_json', 'text')
      .addColumn('after_json', 'text')
      .execute();
    await db.schema.createIndex('audit_log_by_time').on('audit_log').columns(['at_us', 'entry_id']).execute();
  },
};
