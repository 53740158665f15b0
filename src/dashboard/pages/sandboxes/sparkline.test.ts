import { expect, test } from 'bun:test';
import { sparkPoints } from './sparkline.tsx';

const sample = (timestampUnix: number, share: number) => ({ timestampUnix, share });

test('the newest sample is at the right, the most used at the top, and old ones are left out', () => {
  expect(sparkPoints([sample(50, 0.9), sample(550, 0), sample(1000, 1)], 1000)).toBe('0.0,17.0 48.0,1.0');
});

test('an idle sandbox is a flat line near the bottom, and one sample is no line', () => {
  expect(sparkPoints([sample(550, 0.01), sample(1000, 0.01)], 1000)).toBe('0.0,16.2 48.0,16.2');
  expect(sparkPoints([sample(1000, 0.01)], 1000)).toBeNull();
});

test('a sandbox that is younger fills the line with its life, but for the first minute', () => {
  expect(sparkPoints([sample(880, 1), sample(1000, 1)], 1000)).toBe('0.0,1.0 48.0,1.0');
  expect(sparkPoints([sample(970, 1), sample(1000, 1)], 1000)).toBe('24.0,1.0 48.0,1.0');
});
