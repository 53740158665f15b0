import { expect, test } from 'bun:test';
import { readFilesSearch } from './search.ts';

test('what a URL says of files is read as far as it is meant', () => {
  const all = { path: '/a', file: '/a/b', line: 7, order: 'size', hidden: false, find: 'x' } as const;
  expect(readFilesSearch({ ...all, other: 1 })).toEqual(all);
  expect(readFilesSearch({ line: 1, find: 42 })).toEqual({ line: 1, find: '42' });
  expect(readFilesSearch({})).toEqual({});
});

test.each(['path', 'file', 'line', 'order', 'hidden', 'find'])('whatever stands there for %s does no harm', name => {
  const never = [null, true, [], {}, ''];
  const unlessFound = name === 'find' ? [] : [0, -1, 1.5, Infinity, 'a/b', '1', 'false'];
  for (const value of [...never, ...unlessFound])
    expect({ value, search: readFilesSearch({ [name]: value }) }).toEqual({ value, search: {} });
});
