import { expect, test } from 'bun:test';
import { noFeatures } from '../../features.ts';
import { checkRules, isHeaderValue } from './header-rules.ts';

type Rules = Parameters<typeof checkRules>[0];
const features = { ...noFeatures, headerRules: true };
const check = (rules: Rules, context = { prefix: 'network.', features, tokens: ['aws'] }) => checkRules(rules, context);
const headers = (headers: Record<string, string>): Rules => ({ 'a.example': [{ transform: { headers } }] });
const domains = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`d${index}.example`, []]));
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`h${index}`, 'v']));
/** A name of that many characters, in labels of at most 50. */
const nameOf = (characters: number) => `${'a'.repeat(50)}.${'b'.repeat(50)}.${'c'.repeat(characters - 102)}`;

const taken: [string, Rules][] = [
  ['ten domains', domains(10)],
  ['all names below a domain', { '*.a.example': [] }],
  ['a name of 128 characters', { [nameOf(128)]: [] }],
  ['a rule that changes nothing', { 'a.example': [{}] }],
  ['twenty headers', headers(many(20))],
  ['a name of 64 characters', headers({ ['x'.repeat(64)]: 'v' })],
  ['a value of 2048 bytes', headers({ a: 'v'.repeat(2048) })],
  ['a value that is empty', headers({ a: '' })],
  ['a secret and a token that the sandbox has', headers({ a: '${e2b.secrets.x} ${e2b.identity.tokens.aws}' })],
];

test.each(taken)('%s can be had', (_, rules) => check(rules));

const refused: [string, Rules, string][] = [
  ['eleven domains', domains(11), 'network.rules: has 11 domains, the most is 10'],
  ['every domain', { '*': [] }, 'network.rules["*"]: is not a domain name'],
  ['a name that is none', { 'a b': [] }, 'network.rules["a b"]: is not a domain name'],
  ['a longer name', { [nameOf(129)]: [] }, 'is not a domain name of at most 128 characters'],
  ['a domain in two spellings', { 'a.example': [], 'A.example': [] }, 'network.rules: names a domain twice'],
  [
    'more headers',
    headers(many(21)),
    'network.rules["a.example"][0].transform.headers: has 21 headers, the most is 20',
  ],
  ['a header without name', headers({ '': 'v' }), '"" is not a header name'],
  ['a header with a space', headers({ 'a b': 'v' }), '"a b" is not a header name of 1 to 64 characters'],
  ['a longer name of a header', headers({ ['x'.repeat(65)]: 'v' }), 'is not a header name'],
  ['a longer value', headers({ a: 'ÿ'.repeat(1025) }), '["a"]: is not a header value of at most 2048 bytes'],
  ['a value with a line break', headers({ a: 'v\r\nb: 1' }), '["a"]: is not a header value'],
  ['a token that it has not', headers({ a: '${e2b.identity.tokens.gcp}' }), 'iam.tokens has no token "gcp"'],
  ['half a placeholder', headers({ a: '${e2b.secrets.' }), 'holds a malformed placeholder'],
];

test.each(refused)('%s is refused, and where it stands is said', (_, rules, why) => {
  expect(() => check(rules)).toThrow(why);
});

test('an installation that sets no headers refuses rules, but not that there are none', () => {
  const context = { prefix: '', features: noFeatures, tokens: [] };
  expect(() => check(domains(1), context)).toThrow('rules: header rules are not available in this installation');
  check({}, context);
});

test('a header holds visible text without spaces around it', () => {
  for (const text of ['', 'v', 'a b', 'a\tb', 'ÿ']) expect(isHeaderValue(text)).toBe(true);
  for (const text of [' ', ' v', 'v ', 'v\t', 'a\nb', 'a\rb', '\0', '€']) expect(isHeaderValue(text)).toBe(false);
});
