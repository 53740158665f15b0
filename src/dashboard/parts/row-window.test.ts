import { expect, test } from 'bun:test';
import { rowsInSight } from './row-window.ts';

test('a short list is shown whole', () => {
  expect(rowsInSight(40, 40, -1000, 800)).toEqual({ first: 0, end: 40 });
});

test('of a long list, what is in sight is shown, wherever it is scrolled to', () => {
  const [count, rowPx, heightPx] = [10_000, 40, 800];
  for (const scrolled of [0, 39, 40, 5_000, 200_123, count * rowPx - heightPx]) {
    const { first, end } = rowsInSight(count, rowPx, -scrolled, heightPx);
    expect(first * rowPx).toBeLessThanOrEqual(scrolled);
    expect(end * rowPx).toBeGreaterThanOrEqual(scrolled + heightPx);
    expect(end - first).toBeLessThanOrEqual(60);
  }
  // Below the window: nothing but the first ones is kept ready.
  expect(rowsInSight(count, rowPx, 2_000, heightPx).end).toBeLessThanOrEqual(20);
});
