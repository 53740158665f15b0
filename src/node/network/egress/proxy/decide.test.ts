import { expect, test } from 'bun:test';
import { parseAddress, type EgressPolicy } from '../../../../protocol/network/network.ts';
import { compilePolicy } from '../../../../protocol/network/egress-policy.ts';
import { decide, type Asked } from './decide.ts';

const allowed = parseAddress('203.0.113.10')!;
const other = parseAddress('203.0.113.11')!;
const names: EgressPolicy = { internetAccess: false, allowOut: ['allowed.test', '203.0.113.10'] };
const tls = (name?: string, encrypted = false): Asked => ({ kind: 'tls', name, encrypted });
const http = (name?: string): Asked => ({ kind: 'http', name, encrypted: false });
const neither: Asked = { kind: 'other', name: undefined, encrypted: false, meant: 'allowed.test' };
const decided = (policy: EgressPolicy, destination: Uint8Array, asked: Asked) =>
  decide(compilePolicy(policy), destination, asked, { opensAllowedNames: false, platform: undefined });

test('a name never opens the address that the client chose', () => {
  expect(decided(names, other, tls('allowed.test'))).toEqual({ kind: 'pass by name', name: 'allowed.test' });
  expect(decided(names, other, http('allowed.test'))).toEqual({
    kind: 'relay',
    name: 'allowed.test',
    addresses: 'any',
  });
});

test('an allowed address is reached under any name, and under none', () => {
  for (const asked of [tls('other.test'), tls(), http('other.test'), neither])
    expect(decided(names, allowed, asked)).toEqual({ kind: 'pass' });
});

test('a connection that neither its address nor a certain name allows is refused', () => {
  for (const asked of [tls('other.test'), tls(), http('other.test'), http(), neither])
    expect(decided(names, other, asked)).toMatchObject({ kind: 'refuse' });
});

test('an encrypted hello is opened', () => {
  expect(decided(names, other, tls('allowed.test', true))).toEqual({
    kind: 'relay',
    name: 'allowed.test',
    addresses: 'any',
  });
  expect(decided(names, other, tls('other.test', true))).toMatchObject({ kind: 'refuse' });
});

test('header rules look at requests, and reach no further than the policy', () => {
  const headerRules = { 'allowed.test': { A: 'b' }, 'ruled.test': { A: 'b' } };
  expect(decided({ ...names, headerRules }, other, tls('allowed.test'))).toEqual({
    kind: 'relay',
    name: 'allowed.test',
    addresses: 'any',
  });
  expect(decided({ ...names, headerRules }, other, tls('ruled.test'))).toEqual({
    kind: 'relay',
    name: 'ruled.test',
    addresses: 'allowed',
  });
  expect(decided({ internetAccess: true, headerRules }, other, http('ruled.test'))).toEqual({
    kind: 'relay',
    name: 'ruled.test',
    addresses: 'allowed',
  });
  expect(decided({ internetAccess: true, headerRules }, other, tls('other.test'))).toEqual({ kind: 'pass' });
});
