import { expect, test } from 'bun:test';
import { hitsMax, hitsOf } from './hits-of.ts';

test('hits are read, whatever a path or a line has in it', () => {
  expect(hitsOf(`/a:1:b\u000012:x: y\n/c\u00003:\nnonsense\n`)).toEqual({
    hits: [
      { path: '/a:1:b', line: 12, text: 'x: y' },
      { path: '/c', line: 3, text: '' },
    ],
    isMore: false,
    isTimedOut: false,
  });
  const { hits, isMore } = hitsOf(`/a\u00002:x\n`.repeat(hitsMax + 1));
  expect([hits.length, isMore]).toEqual([hitsMax, true]);
  const cut = { hits: [{ path: '/a', line: 2, text: 'x' }], isMore: false, isTimedOut: true };
  expect(hitsOf('/a\u00002:x\n\0\n')).toEqual(cut);
});
