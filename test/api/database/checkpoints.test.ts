import { expect, test } from 'bun:test';
import { Database, SQLiteError } from 'bun:sqlite';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../../src/api/database/database.ts';
import { until } from '../platform.ts';

const rows = 1_500;

/** Rows of a database without what its log has. */
function rowsWithoutLog(path: string, copy: string): number {
  copyFileSync(path, copy);
  using database = new Database(copy);
  return database.query<{ count: number }, []>('select count(*) as count from volume_removals').get()?.count ?? 0;
}

/** A copy of a file that is being written to may have parts of two states: then it says nothing yet. */
function rowsMeanwhile(path: string, copy: string): number {
  try {
    return rowsWithoutLog(path, copy);
  } catch (error) {
    if (error instanceof SQLiteError && error.code === 'SQLITE_CORRUPT') return 0;
    throw error;
  }
}

test('what a log has gets into the database meanwhile, and all of it at the end', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-checkpoints-'));
  const [path, copy] = [join(directory, 'atoll.db'), join(directory, 'copy.db')];
  try {
    const store = await openStore({ kind: 'sqlite', path });
    try {
      for (let row = 0; row < rows; row++)
        await store.db
          .insertInto('volume_removals')
          .values({ volume_id: `v${row}`, node_id: 'node', noted_at_us: row })
          .execute();
      await until(async () => rowsMeanwhile(path, copy) > 0);
    } finally {
      await store[Symbol.asyncDispose]();
    }
    expect(rowsWithoutLog(path, copy)).toBe(rows);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
