import { rmSync } from 'node:fs';
import { sql } from 'kysely';
import { AtollError } from '../../base/error.ts';
import type { Store } from './database.ts';
import type { Db, StoreLocation } from './db.ts';
import { connectStore } from './database.ts';
import { schemaVersion } from './migrate.ts';
import { vacuumInto } from './sqlite/connect.ts';
import { tablesInOrder } from './table-order.ts';

/** Rows per read. */
const readBatch = 500;

/** The first line of a dump. */
export type DumpHeader = { dump: 1; schema: string };
/** A line before the rows of a table; each row is a line too, an array of the columns' values. */
export type DumpTable = { table: string; columns: string[] };
/** A line and, for a row, its table and content. */
type DumpLine = { line: string; table?: string; row?: Record<string, unknown> };

/**
 * The whole state at one moment as lines of JSON, the same from both databases; others may go on writing. `scratch`
 * names a file that may be made meanwhile. Throws `precondition` for a database that was never used.
 */
export async function* dumpStore(location: StoreLocation, scratch: string): AsyncGenerator<DumpLine> {
  if (location.kind === 'sqlite') {
    try {
      // Reads a copy, so that writers need not wait.
      vacuumInto(location.path, scratch);
      await using copy = connectStore({ kind: 'sqlite', path: scratch });
      yield* dumpTables(copy.db, 'sqlite');
    } finally {
      for (const suffix of ['', '-wal', '-shm']) rmSync(scratch + suffix, { force: true });
    }
    return;
  }
  await using store = connectStore(location);
  const transaction = await store.db
    .startTransaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute();
  try {
    yield* dumpTables(transaction, 'postgres');
  } finally {
    await transaction.rollback().execute();
  }
}

async function* dumpTables(db: Db, kind: Store['kind']): AsyncGenerator<DumpLine> {
  const schema = await schemaVersion(db);
  if (schema === null) throw new AtollError('precondition', 'The database holds no installation');
  yield { line: JSON.stringify({ dump: 1, schema } satisfies DumpHeader) };
  for (const table of await tablesInOrder(db, kind)) {
    let columns: string[] | undefined;
    for await (const rows of kind === 'sqlite' ? batchesOfSqlite(db, table) : batchesOfPostgres(db, table)) {
      for (const row of rows) {
        if (!columns) {
          columns = Object.keys(row);
          yield { line: JSON.stringify({ table, columns } satisfies DumpTable) };
        }
        yield { line: JSON.stringify(columns.map(column => row[column])), table, row };
      }
    }
  }
}

type Row = Record<string, unknown>;

async function* batchesOfSqlite(db: Db, table: string): AsyncGenerator<Row[]> {
  for (let after = -1; ;) {
    const { rows } = await sql<Row & { dumped_rowid: number }>`
      select rowid as dumped_rowid, * from ${sql.table(table)} where rowid > ${after} order by rowid limit ${readBatch}
    `.execute(db);
    yield rows.map(({ dumped_rowid: _, ...row }) => row);
    if (rows.length < readBatch) return;
    after = rows.at(-1)?.dumped_rowid ?? after;
  }
}

async function* batchesOfPostgres(db: Db, table: string): AsyncGenerator<Row[]> {
  await sql`declare dumped no scroll cursor for select * from ${sql.table(table)}`.execute(db);
  for (;;) {
    const { rows } = await sql<Row>`fetch ${sql.lit(readBatch)} from dumped`.execute(db);
    yield rows;
    if (rows.length < readBatch) break;
  }
  await sql`close dumped`.execute(db);
}
