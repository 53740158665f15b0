import { expect, test } from 'bun:test';
import { arrange } from './arrange.ts';
import type { Entry } from './store.ts';

const entry = (name: string, bytes: number, changedAt: string, isFolder = false): Entry => ({
  name,
  path: `/${name}`,
  isFolder,
  bytes,
  changedAt,
  owner: '',
  mode: '',
});
const entries = [
  entry('b', 3, '2026-01-01T00:00:00Z'),
  entry('.hidden', 9, '2026-01-03T00:00:00Z'),
  entry('a', 1, '2026-01-02T00:00:00Z'),
  entry('z', 0, '2026-01-01T00:00:00Z', true),
];
const names = (...options: [Parameters<typeof arrange>[1], boolean]) =>
  arrange(entries, ...options).map(({ name }) => name);

test('folders come first, and each order does what it says', () => {
  expect(names('name', true)).toEqual(['z', '.hidden', 'a', 'b']);
  expect(names('name', false)).toEqual(['z', 'a', 'b']);
  expect(names('size', false)).toEqual(['z', 'b', 'a']);
  expect(names('changed', true)).toEqual(['z', '.hidden', 'a', 'b']);
});
