import { verifyToken, signToken } from '../../../src/base/crypto/json-web-token.ts';
import { parseTime } from '../../../src/base/clock.ts';
import { formatTime } from '../../../src/base/time.ts';
import { placeholdersIn, replaceEach } from '../../../src/api/sandbox/rules/network/placeholders.ts';
import { parseMetadataFilter } from '../../../src/api/sandbox/rules/metadata-filter.ts';
import { pageOf, parseCursor } from '../../../src/api/database/cursor.ts';
import { parseReference } from '../../../src/api/template/rules/reference.ts';
import { routeTable } from '../../../src/api/http/match.ts';
import { queryValidator } from '../../../src/api/http/query.ts';
import { routes } from '../../../src/api/routes.ts';
import { validator, type Validator } from '../../../src/api/http/validate.ts';
import { valueOrCode } from '../engine/errors.ts';
import type { Random } from '../engine/random.ts';
import { agree, holds, type Target } from '../engine/target.ts';

const find = routeTable(routes);
const fill = (path: string, random: Random) =>
  path.replace(/\{\w+\}/g, () => random.pick(['abc', '%2e%2e', '..', 'a%2Fb', '%', '%C3%28', '', 'a b']));

export const routePaths: Target = {
  name: 'route-paths',
  corpus: routes.slice(0, 30).map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, 'abc')}`),
  dictionary: ['/', '//', '..', '%2e', '%2F', '%', 'HEAD ', 'DELETE ', '__proto__', 'constructor', '%00', '%ff'],
  generate: random =>
    Buffer.from(
      `${random.pick(['GET', 'POST', 'HEAD', 'PATCH', 'constructor'])} ${fill(random.pick(routes).path, random)}`,
    ),
  pumps: [
    { prefix: 'GET ', unit: '/', suffix: '' },
    { prefix: 'GET ', unit: '/sandboxes', suffix: '' },
    { prefix: 'GET /sandboxes/', unit: '%41', suffix: '' },
  ],
  check(input) {
    const [method = '', path = ''] = input.toString('latin1').split(' ');
    const match = valueOrCode(() => find(method, path), ['invalid']);
    if ('code' in match) return match.code;
    if (match.value.kind !== 'found') return match.value.kind;
    const { route, params } = match.value;
    holds(route.method === method || (method === 'HEAD' && route.method === 'GET'), 'a route is found by its method');
    holds(path.split('/').length === route.path.split('/').length, 'a route has as many parts as its path');
    holds(
      Object.values(params).every(value => typeof value === 'string' && value !== ''),
      'parameters are not empty',
    );
    return `found ${Object.keys(params).length}`;
  },
};

type Checked = { name: string; validate: Validator };
const bodies: readonly Checked[] = routes.flatMap(({ operationId, body }) =>
  body ? [{ name: operationId, validate: validator(body, 'request body') }] : [],
);
const queries: readonly Checked[] = routes.flatMap(({ operationId, query }) =>
  query ? [{ name: operationId, validate: queryValidator(query) }] : [],
);

const members = routes.flatMap(({ body }) => Object.keys((body?.['properties'] as object | undefined) ?? {}));

function anyValue(random: Random, depth = 0): unknown {
  const kind = random.below(depth > 3 ? 6 : 8);
  if (kind < 6)
    return random.pick<unknown>([
      null,
      true,
      0,
      -1,
      1.5,
      1e308,
      4294967296,
      '',
      'abc',
      '2024-01-01T00:00:00Z',
      'x'.repeat(300),
      '\u0000',
      '\ud800',
    ]);
  if (kind === 6) return Array.from({ length: random.below(4) }, () => anyValue(random, depth + 1));
  return Object.fromEntries(
    Array.from({ length: random.below(6) }, () => [
      random.pick([...members, '__proto__', 'constructor', 'x']),
      anyValue(random, depth + 1),
    ]),
  );
}

export const requestBodies: Target = {
  name: 'request-bodies',
  corpus: [
    '{"templateID":"base","timeout":15,"metadata":{"a":"b"},"envVars":{"A":"b"},"network":{"allowOut":["1.2.3.4"],"rules":{"a.example":[{"transform":{"headers":{"X":"y"}}}]}}}',
    '{"name":"x","cpuCount":2,"memoryMB":512,"tags":["a"]}',
    '{"url":"https://a.example","events":["sandbox.lifecycle.created"]}',
    '[]',
    'null',
    '"x"',
  ],
  dictionary: [...new Set(members)]
    .slice(0, 120)
    .map(name => `"${name}":`)
    .concat(['"__proto__":{', 'null', '[]', '{}', '1e999', '-0', '\\u0000', '\\ud800', '[[[[', '{"a":']),
  generate: random => Buffer.from(JSON.stringify(anyValue(random))),
  pumps: [
    { prefix: '{"metadata":{"a":""', unit: ',"b":"c"', suffix: '}}' },
    { prefix: '{"network":{"allowOut":["a"', unit: ',"1.2.3.4"', suffix: ']}}' },
    { prefix: '{"metadata":{"', unit: '/', suffix: '":1}}' },
    { prefix: '', unit: '[', suffix: '' },
  ],
  work(input) {
    const value: unknown = JSON.parse(input.toString());
    for (const { validate } of bodies.slice(0, 4)) valueOrCode(() => validate(value), ['invalid']);
  },
  check(input, random) {
    let value: unknown;
    try {
      value = JSON.parse(input.toString());
    } catch {
      return 'no JSON';
    }
    const { name, validate } = random.pick(bodies);
    const known = valueOrCode(() => validate(value), ['invalid']);
    if ('code' in known) return known.code;
    agree(validate(known.value), known.value, 'what is accepted is accepted again, and as it is');
    holds(JSON.stringify(known.value).length <= JSON.stringify(value).length, 'nothing is invented');
    return `accepted ${name}`;
  },
};

export const requestQueries: Target = {
  name: 'request-queries',
  corpus: [
    'metadata=a%3Db&state=running,paused&limit=10',
    'nextToken=abc&limit=0',
    'start=1&end=2&direction=forward',
    'teamID=x&',
    'a=%ff&b=%',
  ],
  dictionary: [
    'limit=',
    'state=',
    '%00',
    '%',
    '+',
    ',',
    '&',
    '=',
    '9007199254740993',
    'nextToken=',
    '__proto__=',
    'cursor=',
    'offset=',
    '-1',
  ],
  pumps: [
    { prefix: '', unit: 'a=b&', suffix: '' },
    { prefix: 'state=', unit: ',', suffix: '' },
    { prefix: 'limit=', unit: '1', suffix: 'x' },
    { prefix: 'metadata=', unit: '%3D', suffix: '' },
  ],
  check(input, random) {
    const { name, validate } = random.pick(queries);
    const read = valueOrCode(() => validate(input.toString('latin1')), ['invalid']);
    return 'code' in read ? read.code : `accepted ${name}`;
  },
};

/** Filters, tokens, names and times: short texts that clients send in queries and bodies. */
export const metadataFilters: Target = {
  name: 'metadata-filters',
  corpus: ['a=b&c=d', 'a%3Db%26c%3Dd', 'k%2541=v', '=', 'a=b=c', '%'],
  dictionary: ['%3D', '%26', '%25', '&', '=', '%E0%A4'],
  pumps: [
    { prefix: '', unit: 'a=b&', suffix: '' },
    { prefix: '', unit: '%253D', suffix: '' },
    { prefix: '', unit: '&', suffix: '' },
    { prefix: 'a', unit: '=', suffix: '' },
  ],
  check(input) {
    const pairs = valueOrCode(() => parseMetadataFilter(input.toString()), ['invalid']);
    if ('code' in pairs) return pairs.code;
    holds(
      pairs.value.every(([key, value]) => key !== '' && typeof value === 'string'),
      'a pair has a key',
    );
    const written = pairs.value
      .map(([key, value]) => `${encodeURIComponent(key.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`)
      .join('&');
    agree(
      parseMetadataFilter(encodeURIComponent(written)),
      pairs.value.map(pair => pair.map(text => text.toWellFormed())),
      'what clients write is read as the same',
    );
    return `${Math.min(pairs.value.length, 3)} pairs`;
  },
};

const page =
  pageOf(
    [
      { atUs: 1_700_000_000_000_001, id: 'abc' },
      { atUs: 0, id: 'x' },
    ],
    1,
    item => item,
  ).nextToken ?? '';

export const pageTokens: Target = {
  name: 'page-tokens',
  corpus: [
    page,
    Buffer.from('2024-01-01T00:00:00.000000Z__a_b').toString('base64url'),
    Buffer.from('2024-02-30T25:00:00Z__a').toString('base64url'),
    '',
  ],
  dictionary: [page.slice(0, 20), '__', '-', '='],
  generate: random =>
    Buffer.from(
      Buffer.from(
        `${random.pick(['2024-01-01T00:00:00Z', '0001-01-01 00:00:00.999999999+23:59', '9999-12-31T23:59:60Z', 'x'])}${random.pick(['__', '_', '____'])}${random.pick(['a', '', 'a__b', 'A'])}`,
      ).toString('base64url'),
    ),
  check(input) {
    const token = input.toString('latin1');
    const time = parseTime(Buffer.from(token, 'base64url').toString());
    holds(time === null || Number.isFinite(time), 'a time is a number of microseconds');
    const place = valueOrCode(() => parseCursor(token), ['invalid']);
    if ('code' in place) return place.code;
    holds(Number.isSafeInteger(place.value.atUs), 'a place has a time');
    // No row dates from before the epoch, and such years are not written.
    if (place.value.atUs < 0) return 'accepted from before';
    const { nextToken } = pageOf([place.value, place.value], 1, item => item);
    agree(parseCursor(nextToken ?? ''), place.value, 'a token that is written is read as the same');
    holds(parseTime(formatTime(place.value.atUs)) === place.value.atUs, 'a time that is written is read as the same');
    return 'accepted';
  },
};

export const templateNames: Target = {
  name: 'template-names',
  corpus: ['base', 'team/name:tag', 'a:default', ' A/B:v1.0 ', '/', ':'],
  dictionary: ['/', ':', '..', '__', 'default'],
  pumps: [
    { prefix: '', unit: ' ', suffix: 'a' },
    { prefix: '', unit: 'a', suffix: '!' },
  ],
  check(input) {
    const parsed = valueOrCode(() => parseReference(input.toString(), 'templateID'), ['invalid']);
    if ('code' in parsed) return parsed.code;
    const { namespace, name, tag } = parsed.value;
    holds(
      [namespace ?? 'a', name].every(part => /^[a-z0-9_-]+$/.test(part)) && tag !== 'default',
      'a name is one that was given',
    );
    agree(
      parseReference(`${namespace === null ? '' : `${namespace}/`}${name}${tag === null ? '' : `:${tag}`}`, 'x'),
      parsed.value,
      'a name that is written is read as the same',
    );
    return `accepted ${namespace !== null} ${tag !== null}`;
  },
};

export const headerPlaceholders: Target = {
  name: 'header-placeholders',
  corpus: ['Bearer ${e2b.secrets.NAME}', '${e2b.identity.tokens.a b}${e2b.secrets.x}', '${e2b.', 'plain'],
  dictionary: ['${e2b.', '${e2b.secrets.', '${e2b.identity.tokens.', '}', '{'],
  pumps: [
    { prefix: '', unit: '${e2b.secrets.a}', suffix: '' },
    { prefix: '', unit: '${e2b', suffix: '' },
    { prefix: '${e2b.secrets.', unit: 'a', suffix: '' },
  ],
  check(input) {
    const text = input.toString('latin1');
    const found = valueOrCode(() => placeholdersIn(text, 'x'), ['invalid']);
    if ('code' in found) return found.code;
    agree(
      replaceEach(
        text,
        'x',
        ({ kind, name }) => `\${e2b.${kind === 'secret' ? 'secrets' : 'identity.tokens'}.${name}}`,
      ),
      text,
      'placeholders that are put back make the same text',
    );
    holds(!replaceEach(text, 'x', () => '').includes('${e2b.secrets.') || found.value.length > 0, 'all are found');
    return `${Math.min(found.value.length, 2)} placeholders`;
  },
};

const key = Buffer.alloc(32, 1);
const signed = signToken(key, {}, { volume: 'v', exp: 1 });

export const webTokens: Target = {
  name: 'web-tokens',
  corpus: [
    signed,
    signToken(Buffer.alloc(32, 2), {}, { volume: 'v' }),
    'a.b.c',
    signed.replace(/^[^.]*/, Buffer.from('{"alg":"none"}').toString('base64url')),
  ],
  dictionary: ['.', '=', signed.split('.')[1] ?? '', Buffer.from('{"alg":"none"}').toString('base64url')],
  pumps: [
    { prefix: '', unit: 'a', suffix: '' },
    { prefix: '', unit: 'a.', suffix: '' },
  ],
  check(input) {
    const token = input.toString('latin1');
    const claims = verifyToken(key, token);
    if (claims === null) return 'refused';
    // Base64's leftover bits carry no meaning.
    agree(
      Buffer.from(token.split('.')[2] ?? '', 'base64url'),
      Buffer.from(signed.split('.')[2] ?? '', 'base64url'),
      'nobody signs without the key',
    );
    agree(claims, { volume: 'v', exp: 1 }, 'claims are those that were signed');
    return 'accepted';
  },
};
