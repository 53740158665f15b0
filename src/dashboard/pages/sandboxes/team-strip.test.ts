import { expect, test } from 'bun:test';
import { startsPerMinute } from './team-strip.tsx';

const sample = (timestampUnix: number, perMinute: number) => ({
  timestamp: '',
  timestampUnix,
  concurrentSandboxes: 0,
  sandboxStartRate: perMinute / 60,
  sandboxSeconds: 0,
});

test('the rate is that of the last five whole minutes', () => {
  expect(startsPerMinute([sample(600, 5), sample(840, 10), sample(900, 100)], 910)).toBeCloseTo(3);
});

test('minutes in which nothing started count, and nothing counted is no rate', () => {
  expect(startsPerMinute([sample(840, 10)], 900)).toBeCloseTo(2);
  expect(startsPerMinute([sample(60, 10)], 900)).toBeNull();
});
