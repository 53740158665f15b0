import { afterAll, expect, test } from 'bun:test';
import { sql } from 'kysely';
import { column } from '../../record/column.ts';
import { addedColumns } from './added-columns.ts';
import { connectStore } from '../database.ts';

const { db, ...store } = connectStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());

const migrations = addedColumns('things', {
  thingId: column('thing_id').plain<string>(),
  label: column('label', { migration: '0005-label', type: 'text' }).plain<string | null>(),
  isLoud: column('is_loud', { migration: '0006-loud', type: 'integer', initial: 0 }).flag(),
  size: column('size', { migration: '0006-loud', type: 'bigint', initial: 7 }).plain<number>(),
});

test('each column comes with the migration that its definition names; older rows have its initial value', async () => {
  expect(Object.keys(migrations)).toEqual(['0005-label', '0006-loud']);
  await sql`create table things (thing_id text)`.execute(db);
  await sql`insert into things values ('old')`.execute(db);
  for (const migration of Object.values(migrations)) await migration.up(db);
  await sql`insert into things (thing_id, label) values ('new', 'x')`.execute(db);
  const { rows } = await sql`select * from things order by thing_id`.execute(db);
  expect(rows).toEqual([
    { thing_id: 'new', label: 'x', is_loud: 0, size: 7 },
    { thing_id: 'old', label: null, is_loud: 0, size: 7 },
  ]);
  await expect(sql`update things set is_loud = null`.execute(db)).rejects.toThrow('NOT NULL');
});

test('columns of the original table need no migration', () => {
  expect(addedColumns('things', { thingId: column('thing_id').plain<string>() })).toEqual({});
});
