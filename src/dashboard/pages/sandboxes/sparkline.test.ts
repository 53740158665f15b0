import { expect, test } from 'bun:test';
import { sparkPoints } from './sparkline.tsx';

const sample = (timestampUnix: number, cpuUsedPct: number) => ({ timestampUnix, cpuUsedPct });

test('the newest sample is at the right, the most used at the top, and old ones are left out', () => {
  expect(sparkPoints([sample(50, 90), sample(550, 0), sample(1000, 100)], 1000)).toBe('32.0,17.0 64.0,1.0');
});

test('an idle sandbox is a flat line near the bottom, and one sample is no line', () => {
  expect(sparkPoints([sample(550, 1), sample(1000, 1)], 1000)).toBe('32.0,16.2 64.0,16.2');
  expect(sparkPoints([sample(1000, 1)], 1000)).toBeNull();
});
