import { expect, test } from 'bun:test';
import type { SandboxNetwork } from '../../protocol/node.ts';
import { keepSecrets, withoutSecrets } from './policy-secrets.ts';

const secretsOf = (network: SandboxNetwork) => keepSecrets(() => network)();
const withKey = (key: string) => ({ internetAccess: true, headerRules: { 'a.com': { Key: key } } });

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

test('the secrets of a policy stay secret under later ones, and take no room from theirs', () => {
  let network: SandboxNetwork = withKey('the-first-key');
  const secrets = keepSecrets(() => network);
  network = withKey('the-second-key');
  expect(secrets()).toEqual(['the-second-key', 'the-first-key']);
  network = withKey(Array.from({ length: 10_000 }, (_, index) => `word${index}`).join(' '));
  expect(secrets()).toEqual(expect.arrayContaining([...secretsOf(network), 'the-first-key']));
  for (let index = 0; index < 1000; index++) {
    network = withKey(`key-${index}`);
    secrets();
  }
  expect(secrets()).toContain('key-999');
  expect(secrets().length).toBeLessThanOrEqual(257);
});

test('long secrets are found in long texts, however much else there resembles them', () => {
  const almost = 'ab'.repeat(1023);
  const secret = `${almost.slice(0, -2)}ba`;
  const text = `ö${'ab'.repeat(1200)}ba${'ab'.repeat(200)}`;
  expect(withoutSecrets(text, [secret])).toBe(`ö${'ab'.repeat(178)}***${'ab'.repeat(200)}`);
  expect(withoutSecrets('ab'.repeat(2048), [secret])).toBe('ab'.repeat(2048));
});
