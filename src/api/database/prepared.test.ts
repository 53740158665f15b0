import { afterAll, expect, test } from 'bun:test';
import { inTransaction } from './db.ts';
import { openStore } from './database.ts';
import { prepared } from './prepared.ts';

const store = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());

let built = 0;
const insert = prepared<{ id: string; node_id: string; atUs: number }, unknown>((db, parameter) =>
  db
    .insertInto('past_sandboxes')
    .values({
      sandbox_id: parameter('id'),
      team_id: 'team',
      node_id: parameter('node_id'),
      ended_at_us: parameter('atUs'),
    }),
);
const endedBefore = prepared<{ atUs: number; node: string }, { sandbox_id: string }>((db, parameter) => {
  built++;
  return db
    .selectFrom('past_sandboxes')
    .select('sandbox_id')
    .where('node_id', '=', parameter('node'))
    .where('team_id', 'in', ['team', 'other'])
    .where('ended_at_us', '<', parameter('atUs'))
    .orderBy('sandbox_id');
});

test('each run has its own values, in the order in which the query names them', async () => {
  await insert(store.db, { atUs: 1, id: 'a', node_id: 'n' });
  await insert(store.db, { atUs: 2, id: 'b', node_id: 'n' });
  await insert(store.db, { atUs: 3, id: 'c', node_id: 'm' });
  expect(await endedBefore(store.db, { atUs: 2, node: 'n' })).toEqual([{ sandbox_id: 'a' }]);
  expect(await endedBefore(store.db, { atUs: 9, node: 'n' })).toEqual([{ sandbox_id: 'a' }, { sandbox_id: 'b' }]);
  expect(await endedBefore(store.db, { atUs: 9, node: "m' or 1=1 --" })).toEqual([]);
  expect(built).toBe(1);
});

test('in a transaction it is undone with it', async () => {
  const undone = inTransaction(store.db, async db => {
    await insert(db, { atUs: 1, id: 'undone', node_id: 'u' });
    expect(await endedBefore(db, { atUs: 9, node: 'u' })).toHaveLength(1);
    throw new Error('no');
  });
  await expect(undone).rejects.toThrow('no');
  expect(await endedBefore(store.db, { atUs: 9, node: 'u' })).toEqual([]);
});
