import { expect, test } from 'bun:test';
import { formatTime } from './time.ts';
import { parseTime, steadyClock, systemClock } from './clock.ts';

test('times keep their microseconds', () => {
  for (const us of [0, 1, 999, 1_000, 1_763_719_754_123_456, 1_763_719_754_000_001])
    expect(parseTime(formatTime(us))).toBe(us);
  expect(formatTime(1_763_719_754_123_456)).toBe('2025-11-21T10:09:14.123456Z');
});

test('RFC 3339 in its forms', () => {
  const us = 1_763_719_754_000_000;
  for (const [text, expected] of [
    ['2025-11-21T10:09:14Z', us],
    ['2025-11-21t10:09:14z', us],
    ['2025-11-21T12:09:14+02:00', us],
    ['2025-11-21T10:09:14.5Z', us + 500_000],
    ['2025-11-21T10:09:14.123456789Z', us + 123_456],
  ] as const) {
    expect({ text, us: parseTime(text) }).toEqual({ text, us: expected });
  }
  for (const text of [
    '',
    'now',
    '2025-11-21',
    '2025-11-21T10:09:14',
    '2025-13-21T10:09:14Z',
    '2025-11-21T10:09:14.1234567890Z',
    '1763719754',
  ]) {
    expect({ text, us: parseTime(text) }).toEqual({ text, us: null });
  }
});

test('readings one after the other differ', () => {
  const clock = systemClock();
  const readings = Array.from({ length: 500 }, clock);
  expect(new Set(readings).size).toBe(500);
  expect(readings).toEqual(readings.toSorted((a, b) => a - b));
});

test("a steady clock goes on when the machine's is set, says by how much, and follows when asked", () => {
  let wallMs = 1_700_000_000_000;
  let steadyMs = 5;
  const { clock, steppedUs, follow } = steadyClock(
    () => wallMs,
    () => steadyMs,
  );
  const pass = (ms: number) => {
    wallMs += ms;
    steadyMs += ms;
  };
  pass(1_000);
  expect([clock(), steppedUs()]).toEqual([1_700_000_001_000_000, 0]);
  wallMs += 3_600_000;
  expect([clock(), steppedUs()]).toEqual([1_700_000_001_000_001, 3_600_000_000]);
  follow();
  expect([clock(), steppedUs()]).toEqual([1_700_003_601_000_000, 0]);
  wallMs -= 7_200_000;
  expect(steppedUs()).toBe(-7_200_000_000);
  follow();
  pass(1);
  wallMs += 10;
  expect([steppedUs(), clock()]).toEqual([0, wallMs * 1000]);
});
