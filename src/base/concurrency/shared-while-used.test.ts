import { expect, test } from 'bun:test';
import { SharedWhileUsed } from './shared-while-used.ts';

/** Values that say how many were made before them. */
function counted() {
  const shared = new SharedWhileUsed<string, number>();
  let made = 0;
  return () => shared.use('key', async () => made++);
}

test('a value is shared by all who use it before the last of them has ended', async () => {
  const use = counted();
  const first = await use();
  const second = await use();
  expect([first.value, second.value]).toEqual([0, 0]);
  first[Symbol.dispose]();
  const third = await use();
  expect(third.value).toBe(0);
  second[Symbol.dispose]();
  third[Symbol.dispose]();
  using last = await use();
  expect(last.value).toBe(1);
});

test('a failure is not remembered', async () => {
  const shared = new SharedWhileUsed<string, number>();
  await expect(shared.use('key', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  using used = await shared.use('key', async () => 1);
  expect(used.value).toBe(1);
});
