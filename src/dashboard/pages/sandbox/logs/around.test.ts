import { expect, test } from 'bun:test';
import { around } from './around.ts';

const numbers = Array.from({ length: 20 }, (_, index) => index);
const shownOf = (hits: number[], count: number) => around(numbers, one => hits.includes(one), count).shown;

test('what is around hits is shown once, in its order', () => {
  expect(shownOf([0, 3, 12], 2)).toEqual([0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14]);
  expect(shownOf([19], 3)).toEqual([16, 17, 18, 19]);
  expect(shownOf([5, 6], 0)).toEqual([5, 6]);
  expect(shownOf([], 3)).toEqual([]);
});
