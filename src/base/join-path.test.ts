import { expect, test } from 'bun:test';
import { joinPath } from './join-path.ts';

test.each([
  ['/home/user', 'a', '/home/user/a'],
  ['/home/user', 'a/', '/home/user/a/'],
  ['/home/user', '.', '/home/user/'],
  ['/home/user', './', '/home/user/'],
  ['/home/user', '/abs//x', '/abs/x'],
  ['/', '../../x', '/x'],
  ['/work', '/', '/'],
])('%p and %p is %p', (base, path, expected) => {
  expect(joinPath(base, path)).toBe(expected);
});
