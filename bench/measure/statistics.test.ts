import { expect, test } from 'bun:test';
import { percentile, summarize } from './statistics.ts';

test('percentiles are values that were measured', () => {
  const values = Array.from({ length: 100 }, (_, index) => index + 1);
  expect(percentile(values, 0.5)).toBe(50);
  expect(percentile(values, 0.99)).toBe(99);
  expect(percentile([7], 0.99)).toBe(7);
});

test('a summary does not depend on the order', () => {
  expect(summarize([3, 1, 2])).toEqual({ count: 3, min: 1, median: 2, p99: 3, max: 3 });
});
