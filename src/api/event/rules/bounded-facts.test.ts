import { expect, test } from 'bun:test';
import { boundedFacts } from './bounded-facts.ts';

const addresses = (count: number) => Array.from({ length: count }, (_, index) => `192.0.2.${index % 256}`);

test('short facts are kept unchanged, and absent ones stay absent', () => {
  const facts = { allowOut: addresses(100), denyOut: [], allowInternetAccess: null, nested: { a: 1 } };
  expect(boundedFacts(facts)).toBe(facts);
  expect(boundedFacts(undefined)).toBeNull();
});

test('long lists and texts are cut, with the number of what is left out', () => {
  const allowOut = addresses(4096);
  const facts = boundedFacts({
    allowOut,
    denyOut: ['198.51.100.1'],
    name: 'n'.repeat(9_000),
    allowInternetAccess: true,
  });
  expect(facts).toMatchObject({ denyOut: ['198.51.100.1'], name: 'n'.repeat(1000), allowInternetAccess: true });
  const kept = facts?.['allowOut'] as string[];
  expect(kept.slice(0, -1)).toEqual(allowOut.slice(0, kept.length - 1));
  expect(kept.at(-1)).toBe(`and ${4096 - (kept.length - 1)} more`);
  expect(kept.length).toBeGreaterThan(50);
  expect(JSON.stringify(facts).length).toBeLessThan(4096);
  // A single member may be too long.
  expect(boundedFacts({ denyOut: ['x'.repeat(5_000)] })).toEqual({ denyOut: ['and 1 more'] });
});
