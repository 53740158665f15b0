import { expect, test } from 'bun:test';
import { keepOnly } from './keep-only.ts';

test('keys that are not named are removed, and named ones that are missing make no difference', () => {
  const map = new Map([1, 2, 3].map(key => [key, `${key}`]));
  keepOnly(map, [1, 2, 3, 4]);
  expect([...map.keys()]).toEqual([1, 2, 3]);
  keepOnly(map, [4, 3, 1]);
  expect([...map.keys()]).toEqual([1, 3]);
  keepOnly(map, []);
  expect(map.size).toBe(0);
});
