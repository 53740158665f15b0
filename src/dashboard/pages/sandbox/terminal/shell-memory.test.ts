import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  forgetEnded,
  forgetShell,
  keepShell,
  keepShellNumbers,
  keepShellStart,
  keptShell,
  newShellTag,
  shellNumbers,
  shellStart,
} from './shell-memory.ts';

const kept = new Map<string, string>();
beforeEach(() =>
  Object.assign(globalThis, {
    sessionStorage: {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    },
  }),
);
afterEach(() => {
  kept.clear();
  Reflect.deleteProperty(globalThis, 'sessionStorage');
});

const [first, second] = [
  { sandboxId: 'i1', number: 1 },
  { sandboxId: 'i1', number: 2 },
];

test('a shell is known by its place, and after its end the next one begins as it did', () => {
  expect(keptShell(first)).toBeNull();
  keepShell(first, 'tag');
  keepShellStart(first, { user: 'root', cwd: '/srv' });
  expect([keptShell(first), keptShell(second), keptShell({ ...first, sandboxId: 'i2' })]).toEqual(['tag', null, null]);
  forgetEnded(first);
  expect([keptShell(first), shellStart(first)]).toEqual([null, { user: 'root', cwd: '/srv' }]);
  forgetShell(first);
  expect(shellStart(first)).toEqual({ user: 'user' });
  expect(newShellTag()).not.toBe(newShellTag());
});

test('a shell begins as its user at home, unless something else was kept', () => {
  for (const [text, start] of [
    ['{"user":"root"}', { user: 'root' }],
    ['{"user":"root","cwd":1}', { user: 'root' }],
    ['{"user":1,"cwd":"/srv"}', { user: 'user' }],
    ['null', { user: 'user' }],
  ] as const) {
    kept.set('atoll.shell.i1.1.start', text);
    expect(shellStart(first)).toEqual(start);
  }
});

test('a window has one shell in a sandbox, unless it keeps others', () => {
  expect(shellNumbers('i1')).toEqual([1]);
  keepShellNumbers('i1', [2, 5]);
  expect([shellNumbers('i1'), shellNumbers('i2')]).toEqual([[2, 5], [1]]);
  for (const text of ['[]', '{}', 'null', '["1"]', '[1,1.5]']) {
    kept.set('atoll.shells.i1', text);
    expect(shellNumbers('i1')).toEqual([1]);
  }
});
