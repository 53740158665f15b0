import { expect, test } from 'bun:test';
import { leadOf } from './clock-lead.ts';

const date = 'Sat, 28 Nov 2026 12:00:00 GMT';
const at = Date.parse(date);

test('a clock that is wrong is found by the Date of an answer, and one that is right is left alone', () => {
  expect(leadOf(date, at, at + 100)).toBe(0);
  expect(leadOf(date, at - 2_000, at + 2_900)).toBe(0);
  expect(leadOf(date, at - 60_000, at - 59_000)).toBe(60_000);
  expect(leadOf(date, at + 600_400, at + 600_600)).toBe(-600_000);
  // From three seconds on, however the header field rounds.
  expect([-2_499, -2_500].map(early => leadOf(date, at + early, at + early))).toEqual([0, 3_000]);
  expect([leadOf(null, at, at), leadOf('yesterday', at, at)]).toEqual([0, 0]);
});
