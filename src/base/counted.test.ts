import { expect, test } from 'bun:test';
import { counted } from './counted.ts';

test('the words for one thing differ from those for none and several', () => {
  expect([0, 1, 2].map(count => counted(count, 'key'))).toEqual(['0 keys', '1 key', '2 keys']);
  expect([0, 1, 2].map(count => counted(count, 'sandbox', 'sandboxes'))).toEqual([
    '0 sandboxes',
    '1 sandbox',
    '2 sandboxes',
  ]);
});
