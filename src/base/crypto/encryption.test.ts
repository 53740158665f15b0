import { expect, test } from 'bun:test';
import { encrypt, encryptionKey, decrypt } from './encryption.ts';

const key = encryptionKey(new Uint8Array(32).fill(1), 'test');

test('a text can be decrypted with its key in its place, and its ciphertext is never the same twice', () => {
  for (const text of ['', 'x', 'ü\0\n', 'a'.repeat(100_000)]) {
    const encrypted = encrypt(key, text, 'here');
    expect(decrypt(key, encrypted, 'here')).toBe(text);
    expect(encrypt(key, text, 'here')).not.toBe(encrypted);
    if (text.length > 3) expect(encrypted).not.toContain(text);
  }
});

test('it opens nowhere else, with no other key, and not when changed', () => {
  const encrypted = encrypt(key, 'secret', 'here');
  expect(() => decrypt(key, encrypted, 'there')).toThrow();
  expect(() => decrypt(encryptionKey(new Uint8Array(32).fill(1), 'other'), encrypted, 'here')).toThrow();
  expect(() => decrypt(encryptionKey(new Uint8Array(32).fill(2), 'test'), encrypted, 'here')).toThrow();
  for (let i = 3; i < encrypted.length - 2; i += 5) {
    const changed = encrypted.slice(0, i) + (encrypted[i] === 'A' ? 'B' : 'A') + encrypted.slice(i + 1);
    expect(() => decrypt(key, changed, 'here')).toThrow();
  }
  for (const broken of ['', 'v1', 'v1.a', 'v1..', `v2${encrypted.slice(2)}`])
    expect(() => decrypt(key, broken, 'here')).toThrow();
});
