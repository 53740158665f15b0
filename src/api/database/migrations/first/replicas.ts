import { PostgresAdapter, sql } from 'kysely';
import type { Kysely } from 'kysely';

/** The channel on which PostgreSQL reports the ID of each sandbox whose row anybody has changed. */
export const sandboxChannel = 'atoll_sandboxes';

/**
 * The api processes that share the database. A row names the process that works on it in `replica_id`, without a
 * foreign key: what a process left behind has an ID that is no process's any more.
 */
export async function createReplicaTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('replicas')
    .addColumn('replica_id', 'text', column => column.primaryKey())
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('until_us', 'bigint', column => column.notNull())
    .execute();
  if (!(db.getExecutor().adapter instanceof PostgresAdapter)) return;
  await sql`
    create function tell_sandbox_change() returns trigger language plpgsql as $$
    begin
      perform pg_notify(${sql.lit(sandboxChannel)}, coalesce(new.sandbox_id, old.sandbox_id));
      return null;
    end $$
  `.execute(db);
  await sql`
    create trigger tell_sandbox_change after insert or delete or update on sandboxes
    for each row execute function tell_sandbox_change()
  `.execute(db);
}
