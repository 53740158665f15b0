import { expect, test } from 'bun:test';
import { formatAgo, formatDuration } from './duration.ts';

test('lengths of time have at most two parts', () => {
  const seconds = [0, 59, 60, 61, 600, 661, 3600, 5400, 86_400, 90_000];
  expect(seconds.map(value => formatDuration(value * 1000))).toEqual([
    '0s',
    '59s',
    '1m',
    '1m 1s',
    '10m',
    '11m',
    '1h',
    '1h 30m',
    '1d',
    '1d 1h',
  ]);
  expect([500, 90_000, -90_000].map(formatAgo)).toEqual(['now', '1m 30s ago', 'in 1m 30s']);
});
