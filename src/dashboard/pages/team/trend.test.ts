import { expect, test } from 'bun:test';
import { daysUntil } from './trend.ts';

const days = (...peaks: number[]) =>
  peaks.flatMap((peak, day) => [
    { timestampUnix: (20_000 + day) * 86_400, concurrentSandboxes: 0 },
    { timestampUnix: (20_000 + day) * 86_400 + 3_600, concurrentSandboxes: peak },
  ]);

test('what grows reaches its limit by the line through its days', () => {
  expect(daysUntil(days(1, 2, 3, 4), 10)).toBe(6);
  expect(daysUntil(days(2, 4, 6), 5)).toBe(0);
});

test('nothing is foreseen of what does not grow, grows slowly, or is hardly known', () => {
  expect(daysUntil(days(4, 4, 4), 10)).toBeNull();
  expect(daysUntil(days(4, 3, 2), 10)).toBeNull();
  expect(daysUntil(days(1, 9), 10)).toBeNull();
  expect(daysUntil(days(10, 10, 11), 1_000)).toBeNull();
  expect(daysUntil([], 10)).toBeNull();
});
