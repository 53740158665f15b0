import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** What a paused sandbox has kept, which incarnation a resume begins, and which sandbox a snapshot is of. */
export const lifecycle: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('sandboxes').addColumn('kept', 'text').execute();
    await db.schema.alterTable('sandboxes').addColumn('next_execution_id', 'text').execute();
    await db.schema.alterTable('builds').addColumn('source_sandbox_id', 'text').execute();
    await db.schema.createIndex('builds_by_source').on('builds').column('source_sandbox_id').execute();
  },
};
