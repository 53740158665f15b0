import { expect, test } from 'bun:test';
import { secretsOf, withoutSecrets } from './policy-secrets.ts';

test('values of headers and their words are secret, and a proxy’s password', () => {
  const secrets = secretsOf({
    internetAccess: true,
    headerRules: { 'a.com': { Authorization: 'Bearer abcdefgh', Short: 'abc' } },
    egressProxy: { address: 'p:1', password: 'hunter22' },
  });
  expect(secrets).toEqual(['Bearer abcdefgh', 'hunter22', 'abcdefgh', 'Bearer']);
  expect(withoutSecrets('said abcdefgh and hunter22', secrets)).toBe('said *** and ***');
});

test('nobody makes the platform look for any number of words', () => {
  const words = Array.from({ length: 10_000 }, (_, index) => `word${index}`).join(' ');
  const secrets = secretsOf({ internetAccess: true, headerRules: { 'a.com': { Many: words, Key: 'the-key' } } });
  expect(secrets.length).toBe(256);
  expect(secrets).toContain('the-key');
  expect(secrets[0]).toBe(words);
});
