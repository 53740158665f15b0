import { expect, test } from 'bun:test';
import { createGate } from './gate.ts';

test('no more tasks run than the gate lets in, and all run in their order', async () => {
  const gate = createGate(3);
  const started: number[] = [];
  let running = 0;
  let most = 0;
  const tasks = Array.from({ length: 20 }, (_, index) =>
    gate.run(async () => {
      started.push(index);
      most = Math.max(most, ++running);
      await Bun.sleep(1);
      running--;
      return index;
    }),
  );
  expect(gate.waiting()).toBe(17);
  expect(await Promise.all(tasks)).toEqual(Array.from({ length: 20 }, (_, index) => index));
  expect(started).toEqual(Array.from({ length: 20 }, (_, index) => index));
  expect(most).toBe(3);
});

test('a task that fails makes room for the next', async () => {
  const gate = createGate(1);
  await expect(gate.run(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await gate.run(async () => 7)).toBe(7);
});
