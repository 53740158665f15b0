import { expect, test } from 'bun:test';
import { inTransaction } from '../../../src/api/database/db.ts';
import { openStore } from '../../../src/api/database/database.ts';
import { prepared, together } from '../../../src/api/database/prepared.ts';
import { onEachDatabase } from '../databases.ts';

const insert = prepared<{ id: string }, { sandbox_id: string }>((db, parameter) =>
  db
    .insertInto('past_sandboxes')
    .values({ sandbox_id: parameter('id'), team_id: 'team', node_id: 'n', ended_at_us: 1 })
    .returning('sandbox_id'),
);
const count = prepared<object, { count: number }>(db =>
  db.selectFrom('past_sandboxes').select(row => row.fn.countAll<number>().as('count')),
);

onEachDatabase(database => {
  const opened = async () => openStore((await database.location()) ?? { kind: 'sqlite', path: ':memory:' });

  test('queries that go together are carried out in their order, and each has its answer', async () => {
    await using store = await opened();
    const [before, inserted, after] = await inTransaction(store.db, db =>
      together(db, [count.queryOf(db, {}), insert.queryOf(db, { id: 'a' }), count.queryOf(db, {})]),
    );
    expect(inserted).toEqual([{ sandbox_id: 'a' }]);
    expect([before, after].map(([row]) => Number(row?.count))).toEqual([0, 1]);
  });

  test('the first that fails says why, and all is undone with its transaction', async () => {
    await using store = await opened();
    const failing = inTransaction(store.db, db =>
      together(db, [insert.queryOf(db, { id: 'a' }), insert.queryOf(db, { id: 'a' }), count.queryOf(db, {})]),
    );
    await expect(failing).rejects.toThrow(/unique/i);
    const [row] = await count(store.db, {});
    expect(Number(row?.count)).toBe(0);
    await insert(store.db, { id: 'a' });
  });
});
