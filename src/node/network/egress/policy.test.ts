import { expect, test } from 'bun:test';
import { parseAddress, type EgressPolicy } from '../../../protocol/network/network.ts';
import { rangesOf } from '../rules/address-ranges.ts';
import { chainsOf } from '../rules/policy-chains.ts';
import { compilePolicy } from '../../../protocol/network/egress-policy.ts';
import { permitsDirect } from './policy.ts';

const verdict = (policy: EgressPolicy, address: string) => {
  const { allowed, rule } = compilePolicy(policy).byAddress(parseAddress(address)!);
  return `${allowed ? 'allowed' : 'denied'} by ${rule}`;
};

test('allow beats deny, deny beats the default, protected beats all', () => {
  const policy = { internetAccess: true, allowOut: ['203.0.113.7', '10.0.0.0/8'], denyOut: ['203.0.113.0/24'] };
  expect(verdict(policy, '203.0.113.7')).toBe('allowed by allowOut 203.0.113.7');
  expect(verdict(policy, '203.0.113.8')).toBe('denied by denyOut 203.0.113.0/24');
  expect(verdict(policy, '1.1.1.1')).toBe('allowed by default');
  expect(verdict(policy, '10.0.0.1')).toBe('denied by protected 10.0.0.0/8');
});

test('without access, or with everything denied, only what is allowed remains', () => {
  for (const closed of [{ internetAccess: false }, { internetAccess: true, denyOut: ['0.0.0.0/0'] }]) {
    expect(verdict({ ...closed, allowOut: ['1.1.1.1'] }, '1.1.1.1')).toStartWith('allowed');
    expect(verdict({ ...closed, allowOut: ['1.1.1.1'] }, '1.1.1.2')).toStartWith('denied');
    expect(verdict(closed, '2606:4700::1111')).toStartWith('denied');
  }
});

test('among header rules the exact name wins, then the longest pattern', () => {
  const headerRules = {
    '*.example.com': { A: 'wide' },
    '*.api.example.com': { A: 'narrow' },
    'x.api.example.com': { A: 'exact' },
    'Upper.example.com': { A: 'upper' },
  };
  const { headersFor } = compilePolicy({ internetAccess: true, headerRules });
  expect(headersFor('x.api.example.com')).toEqual({ A: 'exact' });
  expect(headersFor('y.api.example.com')).toEqual({ A: 'narrow' });
  expect(headersFor('api.example.com')).toEqual({ A: 'wide' });
  expect(headersFor('upper.example.com')).toEqual({ A: 'upper' });
  expect(headersFor('example.com')).toBeUndefined();
});

test('nothing goes past a SOCKS5 server, nor by QUIC past header rules', () => {
  const address = parseAddress('1.1.1.1')!;
  const socks = compilePolicy({ internetAccess: true, egressProxy: { address: 'proxy.test:1080' } });
  expect(permitsDirect(socks, 'tcp', address, 443).allowed).toBe(false);
  expect(permitsDirect(socks, 'udp', address, 5000).allowed).toBe(false);
  const headers = compilePolicy({ internetAccess: true, allowOut: ['1.1.1.1'], headerRules: { 'a.test': { A: 'b' } } });
  expect(permitsDirect(headers, 'udp', address, 443).allowed).toBe(false);
  expect(permitsDirect(headers, 'udp', address, 53).allowed).toBe(true);
});

test('ranges are the fewest that hold the same addresses', () => {
  const { deny } = compilePolicy({
    internetAccess: true,
    denyOut: ['2001:db8::/33', '2001:db8:8000::/33', '2001:db8:1::/48', '2606:4700::1111', '1.1.1.1', '::/128'],
  });
  expect(rangesOf(deny, 6)).toEqual([
    '0000:0000:0000:0000:0000:0000:0000:0000',
    '2001:0db8:0000:0000:0000:0000:0000:0000-2001:0db8:ffff:ffff:ffff:ffff:ffff:ffff',
    '2606:4700:0000:0000:0000:0000:0000:1111',
  ]);
  const ranges = (...blocks: string[]) => rangesOf(compilePolicy({ internetAccess: true, denyOut: blocks }).deny, 4);
  expect(ranges('10.0.0.0/9', '10.128.0.0/9', '10.3.0.0/16', '1.1.1.1', '1.1.1.2', '2001:db8::/32')).toEqual([
    '1.1.1.1-1.1.1.2',
    '10.0.0.0-10.255.255.255',
  ]);
  expect(ranges('255.255.255.255', '0.0.0.0/0')).toEqual(['0.0.0.0-255.255.255.255']);
  expect(ranges('203.0.113.9/29')).toEqual(['203.0.113.8-203.0.113.15']);
});

test('policies that lead to the same rules share their name, others do not', () => {
  const key = (policy: EgressPolicy) => chainsOf(compilePolicy(policy), { forwardDns: false }).key;
  expect(key({ internetAccess: true })).toBe('open');
  expect(key({ internetAccess: false })).toBe('closed');
  expect(key({ internetAccess: false, denyOut: ['1.1.1.1'] })).toBe('closed');
  expect(key({ internetAccess: false, allowOut: ['1.1.1.0/31', '1.1.1.2'] })).toBe(
    key({ internetAccess: true, denyOut: ['0.0.0.0/0'], allowOut: ['1.1.1.2', '1.1.1.0', '1.1.1.1'] }),
  );
  const different = [
    { internetAccess: true },
    { internetAccess: false },
    { internetAccess: true, denyOut: ['1.1.1.1'] },
    { internetAccess: true, denyOut: ['1.1.1.2'] },
    { internetAccess: false, allowOut: ['1.1.1.1'] },
    { internetAccess: false, allowOut: ['a.test'] },
    { internetAccess: false, allowOut: ['2606:4700::1111'] },
    { internetAccess: true, denyOut: ['2606:4700::1111'] },
    { internetAccess: true, headerRules: { 'a.test': {} } },
    { internetAccess: true, egressProxy: { address: 'a:1' } },
    { internetAccess: false, egressProxy: { address: 'a:1' } },
  ].map(key);
  expect(new Set(different).size).toBe(different.length);
});

test('a policy that lets nothing out redirects only questions for names', () => {
  const platform = { address: '10.0.0.1', ports: [80] };
  const { chains, declarations } = chainsOf(compilePolicy({ internetAccess: false, allowOut: ['1.1.1.1'] }), {
    forwardDns: true,
    platform,
  });
  expect(chains.redirect).toStartWith('turn_');
  expect(declarations.match(/chain turn_\w+ \{\n(.*)\n {2}\}/s)?.[1]).toMatch(/^ .* th dport 53 goto to_resolver$/);
  expect(chainsOf(compilePolicy({ internetAccess: false }), { forwardDns: true, platform }).key).toBe('closed');
});

test('no rule leads out that the policy does not name', () => {
  const text = (policy: EgressPolicy) => chainsOf(compilePolicy(policy), { forwardDns: true }).declarations;
  for (const policy of [
    { internetAccess: false, allowOut: ['1.1.1.1', 'a.test'] },
    { internetAccess: true, denyOut: ['0.0.0.0/0'], headerRules: { 'a.test': {} } },
  ]) {
    expect(text(policy)).not.toMatch(/^ {4}goto open$/m);
    expect(text(policy)).not.toMatch(/^ {4}goto to_proxy$/m);
  }
});
