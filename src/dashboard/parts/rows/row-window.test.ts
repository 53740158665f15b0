import { expect, test } from 'bun:test';
import { rowsInSight, rowsToShow } from './row-window.ts';

test('a short list is shown whole', () => {
  expect(rowsToShow(40, rowsInSight(40, -1000, 800))).toEqual({ first: 0, end: 40 });
});

test('the visible rows of a long list are shown, wherever it is scrolled to', () => {
  const [count, rowPx, heightPx] = [10_000, 40, 800];
  for (const beside of [0, 10])
    for (const scrolled of [0, 39, 40, 5_000, 200_123, count * rowPx - heightPx]) {
      const { first, end } = rowsToShow(count, rowsInSight(rowPx, -scrolled, heightPx), beside);
      expect(first * rowPx).toBeLessThanOrEqual(scrolled);
      expect(end * rowPx).toBeGreaterThanOrEqual(scrolled + heightPx);
      expect(end - first).toBeLessThanOrEqual(40 + 2 * beside);
    }
  // Below the window: only the first ones are kept ready.
  expect(rowsToShow(count, rowsInSight(rowPx, 2_000, heightPx)).end).toBeLessThanOrEqual(20);
  // There are fewer rows than the scroll position implies.
  expect(rowsToShow(50, rowsInSight(rowPx, -20_000, heightPx))).toEqual({ first: 50, end: 50 });
});
