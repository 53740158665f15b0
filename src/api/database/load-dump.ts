import { sql } from 'kysely';
import type { Transaction } from 'kysely';
import { AtollError } from '../../base/error.ts';
import { connectStore } from './database.ts';
import type { Store } from './database.ts';
import type { Db, StoreLocation } from './db.ts';
import type { DumpHeader, DumpTable } from './dump.ts';
import { migrate, schemaVersion } from './migrate.ts';
import type { Tables } from './schema.ts';

const writeBatch = 200;

/**
 * Fills an empty database with a dump, of either kind of database, and brings it up to date. The rows go into the
 * schema that they were written with; everything is one transaction, together with `adjust`. Throws `conflict` where
 * the database is not empty, `precondition` for a dump of a newer version, `invalid` for a damaged one.
 */
export async function loadDump(
  location: StoreLocation,
  lines: AsyncIterable<string>,
  adjust: (db: Transaction<Tables>) => Promise<void>,
): Promise<void> {
  await using store = connectStore(location);
  const reader = lines[Symbol.asyncIterator]();
  const first = await reader.next();
  const header = parse(first.done ? '' : first.value) as DumpHeader;
  if (header?.dump !== 1 || typeof header.schema !== 'string')
    throw new AtollError('invalid', 'The backup does not begin as one does');
  await requireEmpty(store);
  await migrate(store.db, header.schema);
  await store.db.transaction().execute(async db => {
    await loadRows(db, { [Symbol.asyncIterator]: () => reader });
    if (store.kind === 'postgres') await setSequences(db);
  });
  await migrate(store.db);
  await store.db.transaction().execute(adjust);
}

async function requireEmpty(store: Store): Promise<void> {
  if ((await schemaVersion(store.db)) === null) return;
  throw new AtollError(
    'conflict',
    'The database is in use already, or a restore that failed has begun to fill it: a backup is restored into one ' +
      'that was just created.',
  );
}

async function loadRows(db: Transaction<Tables>, lines: AsyncIterable<string>): Promise<void> {
  let table: DumpTable | undefined;
  let rows: unknown[][] = [];
  const write = async () => {
    if (table && rows.length > 0) await insertRows(db, table, rows);
    rows = [];
  };
  for await (const line of lines) {
    const value = parse(line);
    if (Array.isArray(value)) {
      if (!table || value.length !== table.columns.length)
        throw new AtollError('invalid', 'A row of the backup fits no table');
      rows.push(value as unknown[]);
      if (rows.length === writeBatch) await write();
    } else {
      await write();
      table = value as DumpTable;
    }
  }
  await write();
}

async function insertRows(db: Db, { table, columns }: DumpTable, rows: unknown[][]): Promise<void> {
  const values = rows.map(row => sql`(${sql.join(row)})`);
  const names = columns.map(column => sql.ref(column));
  await sql`insert into ${sql.table(table)} (${sql.join(names)}) values ${sql.join(values)}`.execute(db);
}

/** Tables that number their rows continue after the rows that were loaded. */
async function setSequences(db: Db): Promise<void> {
  const { rows } = await sql<{ table_name: string; column_name: string }>`
    select table_name, column_name from information_schema.columns
    where table_schema = current_schema() and column_default like 'nextval(%'`.execute(db);
  for (const { table_name: table, column_name: column } of rows) {
    const highest = sql`(select coalesce(max(${sql.ref(column)}), 0) + 1 from ${sql.table(table)})`;
    await sql`select setval(pg_get_serial_sequence(${table}, ${column}), ${highest}, false)`.execute(db);
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new AtollError('invalid', 'A line of the backup is no JSON', { cause: error });
  }
}
