import { expect, test } from 'bun:test';
import { changing, column, mapperOf } from './column.ts';

const columns = {
  id: column('id').plain<string>(),
  size: changing(column('size_mib').plain<number | null>()),
  isOpen: column('is_open').flag(),
  isWanted: changing(column('is_wanted').flag<boolean | null>()),
  tags: column('tags_json').json<string[]>(),
  extra: column('extra_json').json<{ a: number } | null>(),
};
const { recordOf, rowOf, partOf } = mapperOf(columns);

test('a record is stored and read back as it was, in the forms that both databases hold', () => {
  const record = { id: 'x', size: 3, isOpen: true, isWanted: false, tags: ['a', 'é\0'], extra: { a: 1 } };
  const row = rowOf(record);
  expect(row).toEqual({
    id: 'x',
    size_mib: 3,
    is_open: 1,
    is_wanted: 0,
    tags_json: JSON.stringify(record.tags),
    extra_json: '{"a":1}',
  });
  expect(recordOf(row)).toEqual(record);
});

test('absent values are null, and neither false nor the text null', () => {
  const record = { id: 'x', size: null, isOpen: false, isWanted: null, tags: [], extra: null };
  const row = rowOf(record);
  expect(row).toEqual({ id: 'x', size_mib: null, is_open: 0, is_wanted: null, tags_json: '[]', extra_json: null });
  expect(recordOf(row)).toEqual(record);
});

test('a part has only the columns of its members, and records share nothing', () => {
  expect(partOf({ isWanted: true, extra: null })).toEqual({ is_wanted: 1, extra_json: null });
  const row = rowOf({ id: 'x', size: 1, isOpen: true, isWanted: null, tags: ['a'], extra: null });
  const [first, second] = [recordOf(row), recordOf(row)];
  first.tags.push('b');
  first.size = 2;
  expect(second).toMatchObject({ size: 1, tags: ['a'] });
});

test('whether a column may change is part of its definition', () => {
  expect(Object.values(columns).map(({ name, changes }) => [name, changes])).toEqual([
    ['id', false],
    ['size_mib', true],
    ['is_open', false],
    ['is_wanted', true],
    ['tags_json', false],
    ['extra_json', false],
  ]);
});
