import { expect, test } from 'bun:test';
import { compilePolicy } from '../../../../../protocol/network/egress-policy.ts';
import type { EgressPolicy } from '../../../../../protocol/network/network.ts';
import { recordType } from './message.ts';
import { refusalOf } from './refused-names.ts';

const resolvers = ['8.8.8.8', '1.1.1.1'].map(address => Uint8Array.from(address.split('.').map(Number)));
const closed: EgressPolicy = { internetAccess: true, denyOut: ['0.0.0.0/0'] };
const question = { name: 'example.com', type: recordType.A };
const refusal = (policy: EgressPolicy) => refusalOf(compilePolicy(policy), question, resolvers);

test('a policy that denies what it does not name refuses names', () => {
  expect(refusal({ internetAccess: true })).toBeUndefined();
  expect(refusal(closed)).toBe('denyOut 0.0.0.0/0');
  expect(refusal({ ...closed, allowOut: ['9.9.9.9'] })).toBe('denyOut 0.0.0.0/0');
  // Sandboxes ask an allowed resolver directly: questions that reach the forwarder were meant for another one.
  expect(refusal({ ...closed, allowOut: ['1.1.1.1'] })).toBe('denyOut 0.0.0.0/0');
});

test('if nothing bypasses a SOCKS5 server, it refuses none if it allows a resolver by its address', () => {
  const socks: EgressPolicy = { ...closed, egressProxy: { address: '192.0.2.1:1080' } };
  expect(refusal(socks)).toBe('denyOut 0.0.0.0/0');
  expect(refusal({ ...socks, allowOut: ['9.9.9.9'] })).toBe('denyOut 0.0.0.0/0');
  expect(refusal({ ...socks, allowOut: ['1.1.1.1', '9.9.9.0/24'] })).toBeUndefined();
  expect(refusal({ ...socks, allowOut: ['8.0.0.0/8'] })).toBeUndefined();
});

test('a policy that names domains refuses the others, whatever it allows by address', () => {
  expect(refusal({ ...closed, allowOut: ['example.com', '8.8.8.8'] })).toBeUndefined();
  expect(refusal({ ...closed, allowOut: ['example.org', '8.8.8.8'] })).toBe('denyOut 0.0.0.0/0');
});
