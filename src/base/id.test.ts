import { expect, test } from 'bun:test';
import { newSandboxId, randomName } from './id.ts';

test('names have the asked length and alphabet', () => {
  for (const length of [1, 20, 333]) expect(randomName(length)).toMatch(new RegExp(`^[a-z0-9]{${length}}$`));
});

test('sandbox IDs are DNS labels and differ', () => {
  const ids = new Set(Array.from({ length: 1000 }, newSandboxId));
  expect(ids.size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^i[a-z0-9]{20}$/);
});
