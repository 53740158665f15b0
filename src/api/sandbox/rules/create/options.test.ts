import { expect, test } from 'bun:test';
import { noFeatures } from '../../features.ts';
import { defaultOptions, type SandboxOptions } from '../../record.ts';
import { checkSandboxOptions } from './options.ts';

const usual: SandboxOptions = { ...defaultOptions, timeoutSeconds: 300, secure: true };
const check = (change: Partial<SandboxOptions>, features = { ...noFeatures, iam: true }) =>
  checkSandboxOptions(features, { ...usual, ...change });
const token = (change: object = {}) => ({ tokenType: 'JWT-SVID' as const, audience: 'aws', ...change });
const tokens = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`t${index}`, token()]));
const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));
/** Variables of 100,000 bytes each, including their names of two characters. */
const variables = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`V${index}`, 'x'.repeat(100_000 - 3)]));

test('a sandbox without any options is valid', () => {
  check({});
});

const taken: [string, Partial<SandboxOptions>][] = [
  ['a pause at the end that is in the store', { autoPause: true, autoPauseDurability: 'cluster' }],
  ['a pause at the end without memory', { autoPause: true, autoPauseMemory: false }],
  ['a pause at the end from which traffic wakes it', { autoPause: true, autoResume: true }],
  ['a variable without value', { envVars: { EMPTY: '' } }],
  ['the longest variable that the kernel takes', { envVars: { N: 'x'.repeat(131_069) } }],
  ['a mebibyte of variables', { envVars: { ...variables(10), Z: 'x'.repeat(48_574) } }],
  ['256 pairs of metadata', { metadata: pairs(256) }],
  ['as much metadata as may be', { metadata: { k: 'x'.repeat(256 * 1024 - '{"k":""}'.length) } }],
  ['as large a configuration of MCP as may be', { mcp: { k: 'x'.repeat(64 * 1024 - '{"k":""}'.length) } }],
  ['five identity tokens', { iam: { tokens: tokens(5) } }],
];

test.each(taken)('%s can be had', (_, change) => check(change));

const refused: [string, Partial<SandboxOptions>, string][] = [
  [
    'a pause in the store without a pause',
    { autoPauseDurability: 'cluster' },
    'autoPauseDurability: cluster needs autoPause: true',
  ],
  [
    'a pause without memory without a pause',
    { autoPauseMemory: false },
    'autoPauseMemory: false needs autoPause: true',
  ],
  [
    'to wake by traffic without memory',
    { autoPause: true, autoPauseMemory: false, autoResume: true },
    "autoPauseMemory: false can't be combined with autoResume",
  ],
  ['a variable without name', { envVars: { '': 'x' } }, 'envVars: "" is not a variable\'s name'],
  ['a variable with "=" in its name', { envVars: { 'A=B': 'x' } }, 'envVars: "A=B" is not'],
  ['a variable with NUL in its name', { envVars: { 'A\0': 'x' } }, 'envVars: "A\\u0000" is not'],
  ['a variable with NUL in its value', { envVars: { A: 'x\0' } }, 'envVars["A"]: holds a NUL character'],
  [
    'a variable that no exec takes',
    { envVars: { N: 'x'.repeat(131_070) } },
    'envVars["N"]: 131072 bytes with its name, the most is 131071',
  ],
  [
    'more variables together',
    { envVars: { ...variables(10), Z: 'x'.repeat(48_575) } },
    'envVars: 1048577 bytes in all, the most is 1048576',
  ],
  ['more pairs of metadata', { metadata: pairs(257) }, 'metadata: has 257 pairs, the most is 256'],
  [
    'longer metadata',
    { metadata: { k: 'x'.repeat(256 * 1024 - '{"k":""}'.length + 1) } },
    'metadata: 262145 bytes, the most is 262144',
  ],
  [
    'a larger configuration of MCP',
    { mcp: { k: 'ä'.repeat(32 * 1024) } },
    `mcp: ${64 * 1024 + '{"k":""}'.length} bytes, the most is 65536`,
  ],
  ['six identity tokens', { iam: { tokens: tokens(6) } }, 'iam.tokens: has 6 tokens, the most is 5'],
  ['a token without name', { iam: { tokens: { '': token() } } }, 'iam.tokens: a name must not be empty'],
  [
    'a token for nobody',
    { iam: { tokens: { a: token({ audience: '' }) } } },
    'iam.tokens["a"].audience: must not be empty',
  ],
  [
    'a token of another type',
    { iam: { tokens: { a: token({ tokenType: 'JWT' }) } } },
    'iam.tokens["a"].tokenType: must be "JWT-SVID"',
  ],
];

test.each(refused)('%s is refused, and why is said', (_, change, why) => {
  expect(() => check(change)).toThrow(why);
});

test('identity tokens are refused where the installation has none, and everything else is accepted', () => {
  const why = 'iam.tokens: identity tokens are not available in this installation';
  expect(() => check({ iam: { tokens: tokens(1) } }, noFeatures)).toThrow(why);
  check({ iam: { tokens: {} } }, noFeatures);
});

test('header rules may name the tokens that the same request asks for', () => {
  const features = { ...noFeatures, iam: true, headerRules: true };
  const network = {
    rules: { 'a.example': [{ transform: { headers: { authorization: '${e2b.identity.tokens.t0}' } } }] },
  };
  check({ network, iam: { tokens: tokens(1) } }, features);
  expect(() => check({ network }, features)).toThrow('iam.tokens has no token "t0"');
});
