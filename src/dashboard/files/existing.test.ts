import { expect, test } from 'bun:test';
import { ApiFailure } from '../api/client.ts';
import { existingOf, isThere } from './existing.ts';
import type { Entry } from './store.ts';

const entry = (path: string, isFolder: boolean): Entry => ({
  name: path.slice(path.lastIndexOf('/') + 1),
  path,
  isFolder,
  bytes: 0,
  changedAt: undefined,
  owner: '',
  mode: '',
});
const folders: Record<string, Entry[]> = {
  '/home': [entry('/home/a', false), entry('/home/src', true), entry('/home/dir', true)],
  '/home/src': [entry('/home/src/main', false), entry('/home/src/deep', true)],
  '/home/src/deep': [entry('/home/src/deep/b', false)],
};

test('files that an upload would replace are found, by as few questions as there are folders', async () => {
  const asked: string[] = [];
  const list = async (path: string) => {
    asked.push(path);
    const entries = folders[path];
    if (!entries) throw new ApiFailure(404, 'none');
    return entries;
  };
  const paths = ['a', 'new', 'dir', 'src/main', 'src/other', 'src/deep/b', 'fresh/x', 'a/b'];
  expect(await existingOf({ list }, '/home', paths)).toEqual(['a', 'src/main', 'src/deep/b']);
  expect(asked).toEqual(['/home', '/home/a', '/home/src', '/home/src/deep']);
  expect(await existingOf({ list }, '/nowhere', ['a'])).toEqual([]);
});

test('what is not there is told from what could not be asked for', async () => {
  const failing = (status: number) => ({ list: () => Promise.reject(new ApiFailure(status, 'no')) });
  const there = { list: async () => folders['/home'] ?? [] };
  expect([await isThere(there, '/home/a'), await isThere(there, '/home/b')]).toEqual([true, false]);
  expect(await isThere(failing(404), '/a')).toBe(false);
  expect(await isThere(failing(500), '/a').catch((error: ApiFailure) => error.status)).toBe(500);
});
