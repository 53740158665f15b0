import { expect, test } from 'bun:test';
import { createSemaphore } from './semaphore.ts';

test('no more tasks run than the semaphore allows, and all run in their order', async () => {
  const semaphore = createSemaphore(3);
  const started: number[] = [];
  let running = 0;
  let most = 0;
  const tasks = Array.from({ length: 20 }, (_, index) =>
    semaphore.run(async () => {
      started.push(index);
      most = Math.max(most, ++running);
      await Bun.sleep(1);
      running--;
      return index;
    }),
  );
  expect(semaphore.waiting()).toBe(17);
  expect(await Promise.all(tasks)).toEqual(Array.from({ length: 20 }, (_, index) => index));
  expect(started).toEqual(Array.from({ length: 20 }, (_, index) => index));
  expect(most).toBe(3);
});

test('a task that fails makes room for the next', async () => {
  const semaphore = createSemaphore(1);
  await expect(semaphore.run(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await semaphore.run(async () => 7)).toBe(7);
});
