import { expect, test } from 'bun:test';
import { windowed } from './output-window.ts';

test('little output is not waited for, much is', async () => {
  const shown: (() => void)[] = [];
  const show = windowed(() => new Promise(resolve => shown.push(resolve)));
  await show(new Uint8Array(100_000));
  await show(new Uint8Array(100_000));
  let isRead = false;
  const third = show(new Uint8Array(100_000)).then(() => (isRead = true));
  await Bun.sleep(0);
  expect([shown.length, isRead]).toEqual([3, false]);
  for (const settle of shown) settle();
  await third;
  await show(new Uint8Array(100_000));
  expect(shown).toHaveLength(4);
});
