import { expect, test } from 'bun:test';
import { recycledKeys } from './recycled-keys.ts';

const none = { keys: new Map<string, number>(), made: 0 };
const given = (...ids: string[][]) => ids.reduce(recycledKeys, none);

test('rows that come for all others take their keys, and new ones where there are more', () => {
  const { keys } = given(['a', 'b'], ['c', 'd', 'e']);
  expect([...keys]).toEqual([
    ['c', 0],
    ['d', 1],
    ['e', 2],
  ]);
});

test('rows that stay keep their keys, and those that come among them have new ones', () => {
  const { keys } = given(['a', 'b'], ['new', 'b', 'a']);
  expect(keys.get('a')).toBe(0);
  expect(keys.get('b')).toBe(1);
  expect(keys.get('new')).toBe(2);
});

test('a row that comes back finds no key twice', () => {
  const { keys } = given(['a', 'b'], ['c'], ['c', 'a', 'b']);
  expect(keys.get('c')).toBe(0);
  expect(new Set(keys.values()).size).toBe(3);
});
