import { expect, test } from 'bun:test';
import { createBucket } from './bucket.ts';

test('so often at once, and then so often in a second', () => {
  let time = 0;
  const bucket = createBucket({ perSecond: 10, burst: 3 }, () => time);
  const takes = () => [1, 2, 3, 4].map(() => bucket.take());
  expect(takes()).toEqual([true, true, true, false]);
  time = 100;
  expect(takes()).toEqual([true, false, false, false]);
  time = 60_000;
  expect(takes()).toEqual([true, true, true, false]);
});
