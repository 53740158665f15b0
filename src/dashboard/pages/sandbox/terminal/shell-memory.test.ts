import { expect, test } from 'bun:test';
import { OutputMemory, outputBytesMax } from './shell-memory.ts';

test('the memory of an output keeps its end, and not much more than it may', () => {
  const memory = new OutputMemory();
  for (let i = 0; i < 100; i++) memory.push(new Uint8Array(10_000).fill(i));
  const kept = memory.all();
  const bytes = kept.reduce((sum, part) => sum + part.length, 0);
  expect(bytes).toBeGreaterThanOrEqual(outputBytesMax);
  expect(bytes).toBeLessThan(outputBytesMax + 10_000);
  expect(kept.at(-1)?.[0]).toBe(99);
});
