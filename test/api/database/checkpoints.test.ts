import { expect, test } from 'bun:test';
import { Database, SQLiteError } from 'bun:sqlite';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../../src/api/database/database.ts';
import { until } from '../platform.ts';

/** Rows written in a row: a checkpoint that fails is made up for by the next one. */
const rows = 500;
/** With this many rows, the log is still far from the size at which writers put it into the database themselves. */
const rowsMax = 2_000;

/** The rows of a database, without those in its log. */
function rowsWithoutLog(path: string, copy: string): number {
  copyFileSync(path, copy);
  using database = new Database(copy);
  return database.query<{ count: number }, []>('select count(*) as count from volume_removals').get()?.count ?? 0;
}

/** A copy of a file that is being written may mix two states, or have no tables: then it says nothing yet. */
function rowsMeanwhile(path: string, copy: string): number {
  try {
    return rowsWithoutLog(path, copy);
  } catch (error) {
    const saysNothing = error instanceof SQLiteError && /malformed|no such table/.test(error.message);
    if (saysNothing) return 0;
    throw error;
  }
}

test('what a log has gets into the database meanwhile, and all of it at the end', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-checkpoints-'));
  const [path, copy] = [join(directory, 'atoll.db'), join(directory, 'copy.db')];
  try {
    const store = await openStore({ kind: 'sqlite', path });
    let written = 0;
    const write = async () => {
      for (const end = Math.min(written + rows, rowsMax); written < end; written++)
        await store.db
          .insertInto('volume_removals')
          .values({ volume_id: `v${written}`, node_id: 'node', noted_at_us: written })
          .execute();
    };
    try {
      await until(async () => {
        await write();
        return rowsMeanwhile(path, copy) > 0;
      });
    } finally {
      await store[Symbol.asyncDispose]();
    }
    expect(rowsWithoutLog(path, copy)).toBe(written);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
