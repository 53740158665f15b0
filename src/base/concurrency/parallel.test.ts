import { expect, test } from 'bun:test';
import { forEachParallel } from './parallel.ts';

test('every item is worked on, so many at a time, and the first error is thrown after the last item', async () => {
  let [now, most, done] = [0, 0, 0];
  const items = Array.from({ length: 20 }, (_, index) => index);
  const work = forEachParallel(items, 3, async item => {
    most = Math.max(most, ++now);
    await Bun.sleep(1);
    now--;
    done++;
    if (item % 7 === 3) throw new Error(`item ${item}`);
  });
  await expect(work).rejects.toThrow('item 3');
  expect({ most, done }).toEqual({ most: 3, done: 20 });
  await forEachParallel([], 3, () => Promise.reject(new Error('never')));
});
