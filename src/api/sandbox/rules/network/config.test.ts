import { expect, test } from 'bun:test';
import type { SandboxNetworkConfig } from '../../../../protocol/api/network.ts';
import { type Features, noFeatures } from '../../features.ts';
import { checkNetwork, egressPolicyOf } from './config.ts';

const all: Features = {
  egressAddresses: true,
  egressDomains: true,
  egressProxy: true,
  headerRules: true,
  volumes: true,
  iam: true,
};
type Context = { features?: Features; allowInternetAccess?: boolean | null; secure?: boolean };
const check = (network: SandboxNetworkConfig, context: Context = {}) =>
  checkNetwork(network, {
    prefix: 'network.',
    allowInternetAccess: null,
    features: all,
    tokens: [],
    secure: true,
    ...context,
  });
const everything = '0.0.0.0/0';
const rules = { 'A.Example': [{ transform: { headers: { 'x-key': '1' } } }] };

const taken: [string, SandboxNetworkConfig, Context?][] = [
  ['nothing at all', {}, { features: noFeatures }],
  ['addresses and blocks of both families', { allowOut: ['1.2.3.4'], denyOut: ['8.8.0.0/16', '2001:db8::/32'] }],
  ['a block of addresses that begins with zeros', { denyOut: ['0.0.0.0/1'] }],
  ['domains beside a denial of everything', { allowOut: ['*.a.example', 'b.example'], denyOut: [everything] }],
  ['domains of a sandbox without the Internet', { allowOut: ['a.example'] }, { allowInternetAccess: false }],
  ['a denial of everything where nothing else can be', { denyOut: [everything] }, { features: noFeatures }],
  ['the same of both families', { denyOut: [everything, '::/0'] }, { features: noFeatures }],
  ['a proxy by name', { egressProxy: { address: 'proxy.example:1080', username: 'u', password: 'p' } }],
  ['a proxy by address', { egressProxy: { address: '8.8.8.8:1080', username: 'u'.repeat(255) } }],
  ['header rules', { rules }],
  ['traffic by token alone', { allowPublicTraffic: false }],
  ['public traffic without tokens', { allowPublicTraffic: true }, { secure: false }],
  ['other ports that speak TLS', { httpsPorts: [443, 8443] }],
];

test.each(taken)('%s can be had', (_, network, context = {}) => check(network, context));

const refused: [string, SandboxNetworkConfig, string, Context?][] = [
  ['a denial of a name', { denyOut: ['1.1.1.1', 'a.example'] }, 'network.denyOut[1]: "a.example" is not an address'],
  ['a bare unspecified address', { denyOut: ['0.0.0.0'] }, 'network.denyOut[0]: "0.0.0.0" is not'],
  ['the same of IPv6', { denyOut: ['::'] }, 'network.denyOut[0]: "::" is not'],
  ['an exception for what is no name', { allowOut: ['1.1.1.1', 'a_b!'] }, 'network.allowOut[1]: "a_b!" is not'],
  ['domains alone', { allowOut: ['a.example'] }, 'network.allowOut: domains need 0.0.0.0/0 in network.denyOut'],
  ['the same with the Internet', { allowOut: ['a.example'] }, 'domains need', { allowInternetAccess: true }],
  ['a proxy without port', { egressProxy: { address: 'proxy.example' } }, 'network.egressProxy.address: must be'],
  ['a proxy with no name', { egressProxy: { address: '-:1080' } }, 'network.egressProxy.address: must be'],
  ['a neighbour as proxy', { egressProxy: { address: '10.0.0.1:1080' } }, 'egressProxy.address: is an internal'],
  [
    'a name that is empty',
    { egressProxy: { address: 'p.example:1', username: '' } },
    'egressProxy.username: must have 1 to 255 bytes',
  ],
  [
    'a password that is too long',
    { egressProxy: { address: 'p.example:1', username: 'u', password: 'ä'.repeat(128) } },
    'egressProxy.password: must have 1 to 255 bytes',
  ],
  [
    'a password without name',
    { egressProxy: { address: 'p.example:1', password: 'p' } },
    'egressProxy.password: needs network.egressProxy.username',
  ],
  ['header rules for what is no domain', { rules: { '-': [] } }, 'network.rules["-"]'],
  ['traffic by tokens that there are none of', { allowPublicTraffic: false }, 'needs secure: true', { secure: false }],
  ["TLS at the agent's port", { httpsPorts: [443, 49_983] }, "network.httpsPorts: 49983 is the agent's port"],
];

test.each(refused)('%s is refused, and the member is named', (_, network, why, context = {}) => {
  expect(() => check(network, context)).toThrow(why);
});

const without: [keyof Features, SandboxNetworkConfig, string][] = [
  ['egressDomains', { allowOut: ['a.example'], denyOut: [everything] }, 'network.allowOut: domains are not available'],
  ['egressAddresses', { allowOut: ['1.2.3.4'] }, 'network.allowOut: exceptions for outgoing traffic are not available'],
  ['egressAddresses', { denyOut: ['1.2.3.4'] }, 'network.denyOut: blocks other than 0.0.0.0/0 are not available'],
  ['egressAddresses', { denyOut: [everything, '1.2.3.4'] }, 'network.denyOut: blocks other than'],
  ['egressAddresses', { denyOut: ['::/0'] }, 'network.denyOut: blocks other than'],
  ['egressProxy', { egressProxy: { address: 'p.example:1' } }, 'egress proxies are not available'],
];

test.each(without)('an installation without %s refuses %j', (feature, network, why) => {
  check(network, { features: { ...noFeatures, [feature]: true, egressAddresses: true } });
  expect(() => check(network, { features: { ...all, [feature]: false } })).toThrow(why);
});

test.each(['a.example', 'A.example:80', 'a.example:${PORT}', '${PORT}.a.example', '8.8.8.8', '8.8.8.8:65535'])(
  'services may be shown the host %s',
  maskRequestHost => check({ maskRequestHost }),
);

test.each(['', 'a b', 'ä.example', 'xn--a', 'a.example:0', 'a.example:65536', 'a.example:x', 'a:1:2', '[::1]', '::1'])(
  'services are not shown %p, which is no host',
  maskRequestHost => {
    expect(() => check({ maskRequestHost })).toThrow('network.maskRequestHost: must be a host');
  },
);

test('machines are told what may leave, and no more', () => {
  const nothing = { allowInternetAccess: null, network: null };
  expect(egressPolicyOf(nothing)).toEqual({ internetAccess: true });
  expect(egressPolicyOf({ ...nothing, allowInternetAccess: false })).toEqual({ internetAccess: false });
  const network: SandboxNetworkConfig = {
    allowOut: ['1.2.3.4'],
    denyOut: [everything],
    egressProxy: { address: 'p.example:1', username: 'u', tls: { enabled: false } },
    rules: { ...rules, 'b.example': [] },
    maskRequestHost: 'a.example',
    allowPublicTraffic: false,
  };
  expect(egressPolicyOf({ allowInternetAccess: true, network })).toEqual({
    internetAccess: true,
    allowOut: ['1.2.3.4'],
    denyOut: [everything],
    egressProxy: { address: 'p.example:1', username: 'u' },
    headerRules: { 'a.example': { 'x-key': '1' }, 'b.example': {} },
  });
});
