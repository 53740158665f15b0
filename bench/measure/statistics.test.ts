import { expect, test } from 'bun:test';
import { intervalOfRatio, percentile, summarize } from './statistics.ts';

test('percentiles are values that were measured', () => {
  const values = Array.from({ length: 100 }, (_, index) => index + 1);
  expect(percentile(values, 0.5)).toBe(50);
  expect(percentile(values, 0.99)).toBe(99);
  expect(percentile([7], 0.99)).toBe(7);
});

test('a summary does not depend on the order', () => {
  expect(summarize([3, 1, 2])).toEqual({ count: 3, min: 1, median: 2, p99: 3, max: 3 });
});

test('the interval of a ratio holds it, and is narrow where values are close together', () => {
  const around = (middle: number, spread: number) =>
    Array.from({ length: 60 }, (_, index) => middle + spread * ((index % 11) - 5));
  const clear = intervalOfRatio(around(20, 0.1), around(10, 0.1));
  expect(clear.low).toBeGreaterThan(1.9);
  expect(clear.high).toBeLessThan(2.1);
  const noisy = intervalOfRatio(around(20, 3), around(20.5, 3));
  expect(noisy.low).toBeLessThan(1);
  expect(noisy.high).toBeGreaterThan(1);
});
