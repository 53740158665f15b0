import { expect, test } from 'bun:test';
import { stacked } from './stacked.ts';

test('the topmost of equal layers stays, and all others in their order', () => {
  expect(stacked(['a', 'b', 'a', 'c', 'b'])).toEqual(['a', 'c', 'b']);
  expect(stacked([])).toEqual([]);
});
