import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** What a build failed with, and its log. */
export const builds: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('builds').addColumn('reason_json', 'text').execute();
    await db.schema.alterTable('builds').addColumn('request_json', 'text').execute();
    await db.schema.createIndex('builds_by_status').on('builds').column('status').execute();
    await db.schema
      .createTable('build_log')
      .addColumn('build_id', 'text', column => column.notNull().references('builds.build_id').onDelete('cascade'))
      .addColumn('number', 'integer', column => column.notNull())
      .addColumn('timestamp_ms', 'bigint', column => column.notNull())
      .addColumn('level', 'integer', column => column.notNull())
      .addColumn('message', 'text', column => column.notNull())
      .addColumn('step', 'text')
      .addPrimaryKeyConstraint('build_log_pk', ['build_id', 'number'])
      .execute();
  },
};
