import { expect, test } from 'bun:test';
import { isHeavy, laterUse } from './recent-use.ts';

/** Whether a sandbox counts as heavy at each look, given the processors that it has used since the look before. */
function verdicts(busy: number[]): boolean[] {
  let use = 0;
  return busy.map(processors => isHeavy((use = laterUse(use, processors))));
}

test('a sandbox that computes is heavy at once, and for some more looks', () => {
  expect(verdicts([2, 2, 0, 0, 0, 0, 0, 0])).toEqual([true, true, true, true, true, true, false, false]);
});

test('a sandbox that is kept from computing does not count as light at once', () => {
  expect(verdicts([1, 0.1, 0.1, 0.1])).toEqual([true, true, true, false]);
});

test('a sandbox that starts a program now and then is light', () => {
  expect(verdicts([0.1, 0.4, 0.3, 0.4]).some(Boolean)).toBe(false);
});
