import { expect, test } from 'bun:test';
import { seal, sealKey, unseal } from './seal.ts';

const key = sealKey(new Uint8Array(32).fill(1), 'test');

test('a sealed text opens with its key in its place, and is never the same twice', () => {
  for (const text of ['', 'x', 'ü\0\n', 'a'.repeat(100_000)]) {
    const sealed = seal(key, text, 'here');
    expect(unseal(key, sealed, 'here')).toBe(text);
    expect(seal(key, text, 'here')).not.toBe(sealed);
    if (text.length > 3) expect(sealed).not.toContain(text);
  }
});

test('it opens nowhere else, with no other key, and not when changed', () => {
  const sealed = seal(key, 'secret', 'here');
  expect(() => unseal(key, sealed, 'there')).toThrow();
  expect(() => unseal(sealKey(new Uint8Array(32).fill(1), 'other'), sealed, 'here')).toThrow();
  expect(() => unseal(sealKey(new Uint8Array(32).fill(2), 'test'), sealed, 'here')).toThrow();
  for (let i = 3; i < sealed.length - 2; i += 5) {
    const changed = sealed.slice(0, i) + (sealed[i] === 'A' ? 'B' : 'A') + sealed.slice(i + 1);
    expect(() => unseal(key, changed, 'here')).toThrow();
  }
  for (const broken of ['', 'v1', 'v1.a', 'v1..', `v2${sealed.slice(2)}`]) expect(() => unseal(key, broken, 'here')).toThrow();
});
