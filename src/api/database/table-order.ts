import { sql } from 'kysely';
import type { Store } from './database.ts';
import type { Db } from './db.ts';

/** Every table of the state, each after those that it refers to. */
export async function tablesInOrder(db: Db, kind: Store['kind']): Promise<string[]> {
  const tables = (await db.introspection.getTables()).filter(({ isView }) => !isView).map(({ name }) => name);
  const references = (kind === 'sqlite' ? await referencesOnSqlite(db) : await referencesOnPostgres(db)).filter(
    ({ source, target }) => source !== target,
  );
  const ordered: string[] = [];
  const visit = (table: string) => {
    if (ordered.includes(table)) return;
    for (const { source, target } of references) if (source === table) visit(target);
    ordered.push(table);
  };
  for (const table of tables.toSorted()) visit(table);
  return ordered;
}

type Reference = { source: string; target: string };

async function referencesOnSqlite(db: Db): Promise<Reference[]> {
  const query = sql<Reference>`
    select tables.name as source, keys."table" as target
    from sqlite_master tables, pragma_foreign_key_list(tables.name) keys where tables.type = 'table'`;
  return (await query.execute(db)).rows;
}

async function referencesOnPostgres(db: Db): Promise<Reference[]> {
  const query = sql<Reference>`
    select source.relname as source, target.relname as target from pg_constraint
    join pg_class source on source.oid = conrelid join pg_class target on target.oid = confrelid
    where contype = 'f' and connamespace = current_schema()::regnamespace`;
  return (await query.execute(db)).rows;
}
