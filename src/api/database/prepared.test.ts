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

test('in a transaction a query is undone with it', async () => {
  const undone = inTransaction(store.db, async db => {
    await insert(db, { atUs: 1, id: 'undone', node_id: 'u' });
    expect(await endedBefore(db, { atUs: 9, node: 'u' })).toHaveLength(1);
    throw new Error('no');
  });
  await expect(undone).rejects.toThrow('no');
  expect(await endedBefore(store.db, { atUs: 9, node: 'u' })).toEqual([]);
});

test('lists of any length make few queries, by repeating the last value', async () => {
  let made = 0;
  const named = prepared<{ ids: readonly string[]; node: string }, { sandbox_id: string }>((db, parameter) => {
    made++;
    return db
      .selectFrom('past_sandboxes')
      .select('sandbox_id')
      .where('node_id', '=', parameter('node'))
      .where('sandbox_id', 'in', parameter.each('ids'))
      .orderBy('sandbox_id');
  });
  const found = async (...ids: string[]) =>
    (await named(store.db, { ids, node: 'list' })).map(({ sandbox_id: id }) => id);
  for (const id of ['p', 'q', 'r', 's']) await insert(store.db, { atUs: 1, id, node_id: 'list' });
  expect(await found('q')).toEqual(['q']);
  expect(await found('q', 'r')).toEqual(['q', 'r']);
  expect(await found('s', 'q', 'p')).toEqual(['p', 'q', 's']);
  expect(await found('r', 'none', 's', 'p')).toEqual(['p', 'r', 's']);
  expect(made).toBe(3);
  expect(named.queryOf(store.db, { ids: ['p', 'q', 'r'], node: 'n' }).parameters).toEqual(['n', 'p', 'q', 'r', 'r']);
  await expect(found()).rejects.toThrow('no empty list');
});
