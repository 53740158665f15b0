import { afterAll, beforeEach, expect, spyOn, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { inTransaction } from '../../../src/api/database/db.ts';
import { openStore, type Store } from '../../../src/api/database/database.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-sqlite-'));
afterAll(() => rmSync(folder, { recursive: true }));
let path = '';
let index = 0;
beforeEach(() => (path = join(folder, `${index++}.sqlite`)));

const row = (id: string) => ({ sandbox_id: id, team_id: 'team', node_id: 'node', ended_at_us: 1 });
const insert = (db: Store['db'], id: string) => db.insertInto('past_sandboxes').values(row(id));

const handle = await open('/dev/null');
const written = spyOn(Object.getPrototypeOf(handle) as typeof handle, 'datasync');
await handle.close();
afterAll(() => written.mockRestore());

async function isWritten(store: Store): Promise<boolean> {
  const before = written.mock.calls.length;
  await store.flushed();
  return written.mock.calls.length > before;
}

test('the log is written out where something was committed, and else the disk may rest', async () => {
  await using store = await openStore({ kind: 'sqlite', path });
  await store.flushed();
  expect(await isWritten(store)).toBe(false);
  await store.db.selectFrom('past_sandboxes').selectAll().execute();
  expect(await isWritten(store)).toBe(false);
  await insert(store.db, 'a').execute();
  written.mockRejectedValueOnce(new Error('refused'));
  await expect(store.flushed()).rejects.toThrow('refused');
  expect(await isWritten(store)).toBe(true);
  expect(await isWritten(store)).toBe(false);
});

test.each([
  ['a change that answers its row', (db: Store['db']) => insert(db, 'a').returningAll().execute()],
  ['a transaction', (db: Store['db']) => inTransaction(db, trx => insert(trx, 'a').returningAll().execute())],
  ['a change of the schema', (db: Store['db']) => sql`create table another (id integer)`.execute(db)],
])('%s is written out', async (_, change) => {
  await using store = await openStore({ kind: 'sqlite', path });
  await store.flushed();
  await change(store.db);
  expect(await isWritten(store)).toBe(true);
});

test('what is committed after it was looked for in the middle of its transaction is written out', async () => {
  await using store = await openStore({ kind: 'sqlite', path });
  await inTransaction(store.db, async trx => {
    await insert(trx, 'a').returningAll().execute();
    await store.flushed();
  });
  expect(await isWritten(store)).toBe(true);
});

test('what another connection has committed is written out', async () => {
  await using store = await openStore({ kind: 'sqlite', path });
  await using other = await openStore({ kind: 'sqlite', path });
  await store.flushed();
  expect(await isWritten(store)).toBe(false);
  await insert(other.db, 'a').execute();
  expect(await isWritten(store)).toBe(true);
});
