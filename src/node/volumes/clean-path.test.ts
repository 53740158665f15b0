import { expect, test } from 'bun:test';
import { cleanPath } from './clean-path.ts';

test('every path is rooted at the volume and cleaned', () => {
  const cases: Record<string, string> = {
    '/': '',
    '.': '',
    '..': '',
    a: 'a',
    '/a/': 'a',
    'a//b/./c': 'a/b/c',
    '../../etc/passwd': 'etc/passwd',
    '/a/../../b': 'b',
    'a/..': '',
    '/a/b/../c': 'a/c',
  };
  for (const [path, clean] of Object.entries(cases)) expect([path, cleanPath(path)]).toEqual([path, clean]);
});

test('a text that can’t be a path is refused', () => {
  for (const path of ['', 'a\0b', 'x'.repeat(5000)]) expect(() => cleanPath(path)).toThrow();
});
