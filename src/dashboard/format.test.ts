import { expect, test } from 'bun:test';
import { formatBytes, formatClock, formatCount, formatMoment } from './format.ts';

test('sizes have at most four digits', () => {
  expect([0, 1023, 1024, 1536, 200 * 1024, 5 * 1024 ** 3].map(formatBytes)).toEqual([
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.5 KiB',
    '200 KiB',
    '5.0 GiB',
  ]);
});

test('moments and counts read the same, whoever formats them', () => {
  const at = new Date('2026-03-04T05:06:07Z');
  expect(formatClock(at, 'utc')).toBe('05:06:07');
  expect(formatMoment(at, 'utc')).toBe(
    at.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'long', timeZone: 'UTC' }),
  );
  expect(formatClock(at, 'local')).toBe(at.toLocaleTimeString('en-GB'));
  expect(formatCount(1_234_567)).toBe('1,234,567');
});
