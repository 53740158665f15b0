import { expect, test } from 'bun:test';
import { createDescriptors, descriptorsForSandboxes, type Holder } from './descriptors.ts';

const takeAll = (descriptors: ReturnType<typeof createDescriptors>, holder: Holder): number => {
  let count = 0;
  while (descriptors.take(holder)) count++;
  return count;
};

test('one that takes all it can leaves most for others', () => {
  const descriptors = createDescriptors(900);
  expect(takeAll(descriptors, { held: 0 })).toBe(100);
  expect(takeAll(descriptors, { held: 0 })).toBe(89);
  expect(descriptors.free).toBe(711);
});

test('however many take all they can, one that comes later gets some', () => {
  const descriptors = createDescriptors(20_000);
  const greedy = Array.from({ length: 20 }, () => ({ held: 0 }));
  for (let round = 0; round < 100; round++) for (const holder of greedy) takeAll(descriptors, holder);
  expect(takeAll(descriptors, { held: 0 })).toBeGreaterThanOrEqual(100);
});

test('what is given back is there again, once', () => {
  const descriptors = createDescriptors(10);
  const holder = { held: 0 };
  const release = descriptors.take(holder);
  release?.();
  release?.();
  expect([descriptors.free, holder.held]).toEqual([10, 0]);
});

test('the process knows how many it may open', () => {
  expect(descriptorsForSandboxes()).toBeGreaterThan(0);
});
