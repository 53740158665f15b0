import { expect, test } from 'bun:test';
import { certifyKey, makeAuthority, newKey } from '../base/crypto/certificate.ts';
import { PendingKeys } from './pending-keys.ts';

const authority = makeAuthority('The test', 1);
const certify = (publicKey: string) => certifyKey(authority, publicKey, { names: ['node'], days: 1, use: 'server' });

test('of two keys requested at the same time, a certificate finds its own, whichever comes first', () => {
  const pending = new PendingKeys();
  const [first, second] = [certify(pending.make()), certify(pending.make())];
  const [keyOfFirst, keyOfSecond] = [pending.keyOf(first), pending.keyOf(second)];
  expect(keyOfFirst).toStartWith('-----BEGIN PRIVATE KEY-----');
  expect(keyOfSecond).not.toBe(keyOfFirst);
  pending.clear();
  expect(() => pending.keyOf(second)).toThrow('No such certificate was asked for');
});

test('a certificate that nobody requested is refused, and the number of waiting keys is limited', () => {
  const pending = new PendingKeys();
  expect(() => pending.keyOf(certify(newKey().publicKey))).toThrow('No such certificate was asked for');
  const first = certify(pending.make());
  for (let more = 0; more < 15; more++) pending.make();
  expect(pending.keyOf(first)).toStartWith('-----BEGIN');
  pending.make();
  expect(() => pending.keyOf(first)).toThrow('No such certificate was asked for');
});
