import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { Columns } from '../../record/column.ts';

/** The migrations that add columns to a table, by name, derived from the definitions of its columns (`since`). */
export function addedColumns(table: string, columns: Columns): Record<string, Migration> {
  const added = Object.values(columns).flatMap(({ name, since }) => (since ? [{ name, ...since }] : []));
  const byMigration = Object.groupBy(added, ({ migration }) => migration) as Record<string, typeof added>;
  return Object.fromEntries(
    Object.entries(byMigration).map(([migration, columns]) => [
      migration,
      {
        async up(db: Kysely<unknown>) {
          for (const { name, type, initial } of columns)
            await db.schema
              .alterTable(table)
              .addColumn(name, type, made => (initial === undefined ? made : made.notNull().defaultTo(initial)))
              .execute();
        },
      },
    ]),
  );
}
