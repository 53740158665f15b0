import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { createHmac } from 'node:crypto';
import type { Auth } from '../../src/api/http/auth.ts';
import { jsonDepthMax, jsonValuesMax } from '../../src/api/http/bounded-json.ts';
import { bodyBytesMax } from '../../src/api/http/body.ts';
import { routes } from '../../src/api/routes.ts';
import { volumeToken } from '../../src/api/volume/rules/token.ts';
import { createVolume } from '../../src/api/volume/rules/volumes.ts';
import { newUuid } from '../../src/base/id.ts';
import { authorizationRows } from '../api/authorization-rows.ts';
import { type Caller, Scene } from '../api/authorization-scene.ts';
import { endlessBuilder } from '../api/fake-builder.ts';
import { adminToken, type Answer, call, Platform } from '../api/platform.ts';
import { type Attack, attackWall } from './support/wall.ts';

setDefaultTimeout(60_000);

let scene: Scene;
let platform: Platform;
/** The team whose things are attacked, and its sandbox; the attacker is `platform.team`. */
let victim: { key: string; teamId: string; sandboxId: string; volumeToken: string };
let ownVolumeToken: string;

beforeAll(async () => {
  scene = await Scene.open();
  platform = await Platform.start({
    builder: endlessBuilder(),
    limits: { concurrentSandboxes: 500, requestsPerSecond: 0 },
    features: { volumes: true },
  });
  const { team, key } = await platform.otherTeam('victim');
  const made = await call(
    platform.socketPath,
    'POST',
    '/v2/sandboxes',
    { templateID: 'base', metadata: { secret: 'yes' } },
    { 'x-api-key': key },
  );
  const volume = await createVolume(platform.api.parts, team, 'theirs');
  ownVolumeToken = volumeToken(platform.api.parts, await createVolume(platform.api.parts, platform.team, 'ours'));
  victim = {
    key,
    teamId: team.teamId,
    sandboxId: (made.body as { sandboxID: string }).sandboxID,
    volumeToken: volumeToken(platform.api.parts, volume),
  };
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  await platform[Symbol.asyncDispose]();
});

const status = async (answer: Promise<Answer>) => (await answer).status;
const raw = (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) =>
  call(platform.socketPath, method, path, body, headers);
const textOf = (answer: Answer) => JSON.stringify(answer.body ?? '');

/** Every operation about a thing, requested with the key of a team that does not own the thing. */
const foreign: Attack[] = Object.entries(authorizationRows)
  .filter(([, row]) => row.foreign >= 400 && row.foreign !== row.success)
  .map(([operationId, row]) => [
    `another team's credential for ${operationId}`,
    async () => {
      const route = routes.find(candidate => candidate.operationId === operationId);
      if (!route) throw new Error(`no route ${operationId}`);
      const request = await row.request(scene);
      const caller: Caller =
        route.auth === 'volume'
          ? "other team's volume token"
          : route.auth === 'member' || route.auth === 'memberOrAdmin'
            ? "other team's member"
            : "other team's key";
      const answer = await scene.send(caller, route.method, request.path, request.body);
      expect([401, row.foreign]).toContain(answer.status);
      expect(textOf(answer)).not.toContain(scene.team.name);
    },
  ]);

/** Values in place of an object. */
const confusions: Record<string, string> = {
  'an array': '[]',
  null: 'null',
  'a number': '7',
  'a text': '"text"',
  true: 'true',
  'an array of objects': '[{}]',
};
const withBody = routes.filter(({ body, bodyOptional }) => body !== null && !bodyOptional);
/** A caller who gets past each way of authentication to the body. */
const callers: Partial<Record<Auth, Caller>> = {
  admin: 'admin',
  member: 'access token with team',
  user: 'access token with team',
  memberOrAdmin: 'access token with team',
  volume: "volume's token",
  session: 'session',
  userSession: 'session',
  operatorSession: "operator's session",
};
const callerFor = (auth: Auth): Caller => callers[auth] ?? 'right key';
const confused: Attack[] = withBody.flatMap(({ operationId, auth, method }, index): Attack[] =>
  Object.entries(confusions)
    .filter((_, which) => which === index % 3 || which === 3 + (index % 3))
    .map(([what, body]) => [
      `${operationId} gets ${what} as its body`,
      async () => {
        const request = await authorizationRows[operationId]?.request(scene);
        const answer = await scene.send(callerFor(auth), method, request?.path ?? '', body);
        expect({ operationId, what, status: answer.status }).toEqual({ operationId, what, status: 400 });
      },
    ]),
);

/** Members that a caller must not set, in a create that is otherwise fine. */
const assigned: [string, Record<string, unknown>][] = [
  ['teamID of the victim', { teamID: 'victim' }],
  ['team_id', { team_id: 'victim' }],
  ['sandboxID of its own choice', { sandboxID: 'aaaaaaaaaaaaaaaaaaaa' }],
  ['state killing', { state: 'killing' }],
  ['cpuCount', { cpuCount: 64 }],
  ['memoryMB', { memoryMB: 999_999 }],
  ['diskSizeMB', { diskSizeMB: 999_999 }],
  ['endAt of the year 2999', { endAt: '2999-01-01T00:00:00Z' }],
  ['startedAt', { startedAt: '2000-01-01T00:00:00Z' }],
  ['nodeID', { nodeID: 'other' }],
  ['driver', { driver: 'crun' }],
  ['__proto__', JSON.parse('{"__proto__":{"secure":false,"admin":true}}') as Record<string, unknown>],
  ['constructor', { constructor: { prototype: { admin: true } } }],
  ['envdAccessToken of its own choice', { envdAccessToken: 'mine' }],
  ['limits', { limits: { concurrentSandboxes: 9 } }],
  ['isAdmin', { isAdmin: true }],
];
const assignments: Attack[] = assigned.map(([what, members]) => [
  `a create assigns ${what}`,
  async () => {
    const answer = await platform.call('POST', '/v2/sandboxes', { templateID: 'base', timeout: 60, ...members });
    expect(answer.status).toBe(201);
    const { sandboxID, envdAccessToken } = answer.body as { sandboxID: string; envdAccessToken: string };
    expect(sandboxID).not.toBe('aaaaaaaaaaaaaaaaaaaa');
    expect(envdAccessToken).not.toBe('mine');
    const detail = (await platform.call('GET', `/sandboxes/${sandboxID}`)).body as Record<string, unknown>;
    expect(detail).toMatchObject({ state: 'running', cpuCount: 2, memoryMB: 1024, diskSizeMB: 5120 });
    expect(Date.parse(String(detail['endAt']))).toBeLessThan(Date.now() + 120_000);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);
  },
]);

/**
 * Names that an operator might misspell, or an attacker with the operator's token might slip in. None may change
 * anything.
 */
const misspelled: [string, string, Record<string, unknown>, string][] = [
  ['PATCH', 'limits.concurrentSandbox', { limits: { concurrentSandbox: 2 } }, 'limits.concurrentSandbox'],
  ['PATCH', 'limits.__proto__', { limits: JSON.parse('{"__proto__":{"cpuCount":9}}') }, 'limits.__proto__'],
  ['PATCH', 'Limits', { Limits: {} }, 'Limits'],
  ['PATCH', 'slug', { slug: 'victim' }, 'slug'],
  ['PATCH', 'teamID', { teamID: newUuid() }, 'teamID'],
  ['PATCH', 'ban', { ban: true }, 'ban'],
  ['PATCH', 'a name of 100,000 characters', { ['x'.repeat(100_000)]: 1 }, 'xxx'],
];
const strict: Attack[] = misspelled.map(([method, what, body, names]) => [
  `a change of a team says ${what}`,
  async () => {
    const path = `/admin/teams/${victim.teamId}`;
    const before = textOf(await raw('PATCH', path, { 'x-admin-token': adminToken }, {}));
    const answer = await raw(method, path, { 'x-admin-token': adminToken }, body);
    expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining(`${names}`) } });
    expect(textOf(answer).length).toBeLessThan(3000);
    expect(textOf(await raw('PATCH', path, { 'x-admin-token': adminToken }, {}))).toBe(before);
  },
]);

/** Bodies that cost more to process than their size suggests. Each must be refused, with the right reason. */
const member = (count: number) =>
  `{"templateID":"base",${Array.from({ length: count }, (_, i) => `"k${i}":0`).join(',')}}`;
const costly: Record<string, [() => string, number]> = {
  'an array one deeper than allowed': [() => '['.repeat(jsonDepthMax + 1) + ']'.repeat(jsonDepthMax + 1), 400],
  'an array 500,000 deep': [() => '['.repeat(500_000), 400],
  'objects 100,000 deep': [() => '{"a":'.repeat(100_000), 400],
  'mcp 10,000 deep': [() => `{"templateID":"base","mcp":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`, 400],
  'more members than allowed': [() => member(jsonValuesMax), 400],
  'more elements than allowed': [() => `[${'0,'.repeat(jsonValuesMax)}0]`, 400],
  'a text longer than a body may be': [() => `{"templateID":"${'a'.repeat(bodyBytesMax.createSandbox)}"}`, 413],
  'white space longer than a body may be': [() => ' '.repeat(bodyBytesMax.createSandbox + 1), 413],
  'a text that never ends': [() => `{"a":"${'\\\\'.repeat(100_000)}`, 400],
  'a number of 100,000 digits': [() => `{"templateID":"base","timeout":${'9'.repeat(100_000)}}`, 400],
  'a number with a huge exponent': [() => '{"templateID":"base","timeout":1e999999}', 400],
  'a key twice, the second one bad': [() => '{"templateID":"base","templateID":7}', 400],
  'a lone surrogate as template': [() => '{"templateID":"\\ud800"}', 400],
  'NUL in a template': [() => '{"templateID":"ba\\u0000se"}', 400],
  'a comment': [() => '{"templateID":"base"/*x*/}', 400],
  'a trailing comma': [() => '{"templateID":"base",}', 400],
  'single quotes': [() => "{'templateID':'base'}", 400],
  NaN: [() => '{"templateID":"base","timeout":NaN}', 400],
  'UTF-16': [() => '\u0000{\u0000}', 400],
  '5,000 volume mounts': [
    () =>
      JSON.stringify({
        templateID: 'base',
        volumeMounts: Array.from({ length: 5000 }, () => ({ name: 'v', path: '/a' })),
      }),
    400,
  ],
  '10,000 header rules': [
    () =>
      JSON.stringify({
        templateID: 'base',
        network: { rules: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`a${i}.com`, []])) },
      }),
    400,
  ],
  '5,000 addresses': [
    () => JSON.stringify({ templateID: 'base', network: { denyOut: Array.from({ length: 5000 }, () => '1.2.3.4') } }),
    400,
  ],
  'metadata of 1 MiB': [() => JSON.stringify({ templateID: 'base', metadata: { a: 'x'.repeat(2 ** 20) } }), 400],
  'an environment of 2 MiB': [
    () =>
      JSON.stringify({
        templateID: 'base',
        envVars: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`A${i}`, 'x'.repeat(100_000)])),
      }),
    400,
  ],
};
const bodies: Attack[] = Object.entries(costly).map(([what, [body, expected]]) => [
  `a create gets ${what}`,
  async () => {
    const answer = await platform.call('POST', '/v2/sandboxes', body());
    expect({ what, status: answer.status }).toEqual({ what, status: expected });
    expect(textOf(answer).length).toBeLessThan(3000);
  },
]);

/** Spellings of paths that lead elsewhere on some server. With the attacker's key; the last are operators' routes. */
const paths = [
  '/sandboxes/../admin/teams',
  '/sandboxes/%2e%2e/admin/teams',
  '/sandboxes/..%2fadmin%2fteams',
  '/%61dmin/teams',
  '//admin/teams',
  '/admin//teams',
  '/admin/teams/',
  '/ADMIN/teams',
  '/admin/teams;a',
  '/admin/teams%00',
  '/admin/teams%20',
  '/admin\\teams',
  '/.%2e/admin/teams',
  '/sandboxes/%00',
  '/sandboxes/%c0%ae%c0%ae',
  '/sandboxes/%ff',
  '/sandboxes/%zz',
  '/sandboxes/%',
  '/sandboxes/%25',
  '/sandboxes/a%0d%0aX:%20y',
  `/sandboxes/${'a'.repeat(10_000)}`,
  '/sandboxes/a/b/c/d/e',
  '/sandboxes/*',
  '/sandboxes/%27%20or%201=1--',
  '/sandboxes/..',
  '/sandboxes/.',
  '/sandboxes/',
  '/templates/..%2f..%2fetc%2fpasswd',
  '/templates/%2e%2e',
  '/templates/aliases/%27;drop%20table%20teams',
  '/v2/../admin/teams',
  '/v2/templates/%00/builds/%00',
  '/admin/teams?x-admin-token=operator-of-the-tests',
  '/metrics',
  '/openapi.json/',
  '/health/../admin/teams',
  `/${'a/'.repeat(5000)}`,
];
const encodings: Attack[] = paths.map(path => [
  `the path ${path.slice(0, 60)}`,
  async () => {
    const answer = await platform.call('GET', path);
    expect([400, 401, 403, 404, 405]).toContain(answer.status);
    expect(textOf(answer)).not.toContain(victim.teamId);
    expect(textOf(answer).length).toBeLessThan(25_000);
  },
]);

/** Credentials that nobody issued. */
const forgedKeys: [string, (key: string) => Record<string, string>][] = [
  ['no key', () => ({})],
  ['an empty key', () => ({ 'x-api-key': '' })],
  ['a key without its prefix', key => ({ 'x-api-key': key.slice(4) })],
  ['a key cut by one character', key => ({ 'x-api-key': key.slice(0, -1) })],
  ['a key with one more', key => ({ 'x-api-key': `${key}0` })],
  ['a key in capitals', key => ({ 'x-api-key': key.toUpperCase() })],
  ['a key with another last digit', key => ({ 'x-api-key': key.slice(0, -1) + (key.endsWith('0') ? '1' : '0') })],
  ['a key as a bearer', key => ({ authorization: `Bearer ${key}` })],
  ['a key as a password', key => ({ authorization: `Basic ${Buffer.from(`x:${key}`).toString('base64')}` })],
  ['a key as a cookie', key => ({ cookie: `x-api-key=${key}` })],
  ['a wildcard', () => ({ 'x-api-key': 'e2b_%' })],
  ['a quote', () => ({ 'x-api-key': "e2b_' or 1=1 --" })],
  ['two keys in a list', key => ({ 'x-api-key': `${key}, ${key}` })],
  ['the digest of a key', () => ({ 'x-api-key': `e2b_${'a'.repeat(64)}` })],
  ["the operator's token as a key", () => ({ 'x-api-key': adminToken })],
  ['a key as the operator’s token', key => ({ 'x-admin-token': key, 'x-team-id': newUuid() })],
  ["the operator's token cut by one", () => ({ 'x-admin-token': adminToken.slice(0, -1) })],
  ['a volume token as a key', () => ({ 'x-api-key': victim.volumeToken })],
  [
    'a volume token as an access token',
    () => ({ authorization: `Bearer ${victim.volumeToken}`, 'x-team-id': victim.teamId }),
  ],
  ['a key of 10,000 characters', () => ({ 'x-api-key': `e2b_${'a'.repeat(10_000)}` })],
  ['a key in another header', key => ({ apikey: key, 'x-apikey': key, api_key: key })],
];
const credentials: Attack[] = forgedKeys.map(([what, headers]) => [
  `${what} lists the victim's sandboxes`,
  async () => {
    const answer = await raw('GET', '/v2/sandboxes', headers(victim.key));
    expect(answer.status).toBe(401);
    expect(textOf(answer)).not.toContain(victim.sandboxId);
  },
]);

/** Tokens for the content of a volume, made without the key. */
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
const headOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as Record<string, unknown>;
const signed = (head: unknown, claims: unknown, key: string | Uint8Array) => {
  const text = `${part(head)}.${part(claims)}`;
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
};
const forgedTokens: Record<string, (token: string) => string> = {
  'the algorithm none': token => `${part({ ...headOf(token), alg: 'none' })}.${token.split('.')[1]}.`,
  'the algorithm NONE': token => `${part({ ...headOf(token), alg: 'NONE' })}.${token.split('.')[1]}.`,
  'no signature': token => token.split('.').slice(0, 2).join('.'),
  'an empty signature': token => `${token.split('.').slice(0, 2).join('.')}.`,
  'a signature with an empty key': token => signed(headOf(token), claimsOf(token), ''),
  'a signature with its key ID as key': token => signed(headOf(token), claimsOf(token), String(headOf(token)['kid'])),
  'claims of another volume under the own signature': token =>
    [token.split('.')[0], victim.volumeToken.split('.')[1], token.split('.')[2]].join('.'),
  'a later end under the same signature': token =>
    [token.split('.')[0], part({ ...claimsOf(token), exp: 9_999_999_999 }), token.split('.')[2]].join('.'),
  'a signature in another alphabet': token => `${token.slice(0, -2)}+/`,
  'a fourth part': token => `${token}.x`,
  'two tokens': token => `${token} ${token}`,
  'the algorithm RS256': token => signed({ ...headOf(token), alg: 'RS256' }, claimsOf(token), 'key'),
  'a key by URL': token => signed({ ...headOf(token), jku: 'http://attacker.example/' }, claimsOf(token), 'key'),
};
const volumeTokens: Attack[] = Object.entries(forgedTokens).map(([what, forge]) => [
  `the token of a volume with ${what}`,
  async () => {
    const theirs = String(claimsOf(victim.volumeToken)['volid']);
    const answer = await raw('GET', `/volumecontent/${theirs}/dir?path=/`, {
      authorization: `Bearer ${forge(ownVolumeToken)}`,
    });
    expect(answer.status).toBe(401);
    const own = await raw('GET', `/volumecontent/${String(claimsOf(ownVolumeToken)['volid'])}/dir?path=/`, {
      authorization: `Bearer ${forge(ownVolumeToken)}`,
    });
    expect(own.status).toBe(401);
  },
]);

/** Tampered upload URLs. */
const uploads: Attack[] = (
  [
    'team',
    'hash',
    'expires',
    'signature',
    'no signature',
    'two signatures',
    'a hash that leads out',
    'expired',
  ] as const
).map(what => [
  `an upload's URL with another ${what}`,
  async () => {
    const { templateID } = (await platform.call('POST', '/v3/templates', { name: `u${what.replaceAll(' ', '')}` }))
      .body as { templateID: string };
    const slot = (await platform.call('GET', `/templates/${templateID}/files/${'a'.repeat(64)}`)).body as {
      url: string;
    };
    const url = new URL(slot.url);
    if (what === 'team') url.pathname = url.pathname.replace(platform.team.teamId, victim.teamId);
    if (what === 'hash') url.pathname = url.pathname.replace(/a{64}/, 'b'.repeat(64));
    if (what === 'expires') url.searchParams.set('expires', String(Number(url.searchParams.get('expires')) + 3600));
    if (what === 'signature') url.searchParams.set('signature', 'a'.repeat(64));
    if (what === 'no signature') url.searchParams.delete('signature');
    if (what === 'two signatures') url.search = `?expires=9999999999&signature=x&${url.search.slice(1)}`;
    if (what === 'a hash that leads out') url.pathname = url.pathname.replace(/a{64}/, '..%2f..%2fx');
    if (what === 'expired') url.searchParams.set('expires', '1');
    const answer = await raw('PUT', url.pathname + url.search, {}, 'archive');
    expect([400, 401, 404]).toContain(answer.status);
  },
]);

/** Page tokens and times that no page issued. */
const pageTokens = [
  '',
  'x',
  '%00',
  '__',
  'a'.repeat(10_000),
  Buffer.from('__').toString('base64url'),
  Buffer.from("2026-01-01T00:00:00Z__' or 1=1").toString('base64url'),
  Buffer.from('2026-01-01T00:00:00Z__a__asc__b').toString('base64url'),
  Buffer.from('9999-99-99T00:00:00Z__a').toString('base64url'),
  Buffer.from('1e9__a').toString('base64url'),
  '%F0%9F%92%A9',
  '../../x',
];
const pages: Attack[] = ['/v2/sandboxes', '/snapshots', '/secrets'].flatMap((path): Attack[] =>
  pageTokens.map((token, index) => [
    `page token ${index} of ${path}: ${token.slice(0, 20)}`,
    async () => {
      const answer = await platform.call('GET', `${path}?nextToken=${token}`);
      expect([200, 400]).toContain(answer.status);
      expect(textOf(answer)).not.toContain(victim.sandboxId);
    },
  ]),
);

/** Queries that cost more than their size suggests, or ask for what they should not. */
const queries: Record<string, [string, number]> = {
  'a metadata filter of 51 pairs': [
    `/v2/sandboxes?metadata=${encodeURIComponent(Array.from({ length: 51 }, (_, i) => `a${i}=b`).join('&'))}`,
    400,
  ],
  'a metadata filter of 1,000 pairs': [`/sandboxes?metadata=${encodeURIComponent('a=b&'.repeat(1000))}`, 400],
  'a metadata filter encoded twice with 500 pairs': [
    `/sandboxes?metadata=${encodeURIComponent(encodeURIComponent('a=b&'.repeat(500)))}`,
    400,
  ],
  'a metadata filter with a quote': [`/sandboxes?metadata=${encodeURIComponent("a=' or 1 is 1--")}`, 200],
  'a limit of -1': ['/v2/sandboxes?limit=-1', 400],
  'a limit of a million': ['/v2/sandboxes?limit=1000000', 400],
  'a limit of 1e3': ['/v2/sandboxes?limit=1e3', 400],
  'a limit of 2 to the 64': ['/v2/sandboxes?limit=18446744073709551616', 400],
  'a state that is none': ['/v2/sandboxes?state=killing', 400],
  'a state 1,000 times': [`/v2/sandboxes?state=${'running,'.repeat(1000)}running`, 200],
  'a team of its own choice': ['/v2/sandboxes?teamID=victim&team_id=victim', 200],
  'a start in the year 275760': ['/v2/sandboxes?startedAfter=%2B275760-09-13T00:00:00Z', 400],
  'a template with a quote': [`/v2/sandboxes?template=${encodeURIComponent("'; drop table sandboxes--")}`, 400],
  'metrics of 10,000 sandboxes': [`/sandboxes/metrics?sandbox_ids=${'a,'.repeat(5000)}a`, 400],
  'a parameter 2,000 times': [`/v2/sandboxes?${'limit=1&'.repeat(1500)}`, 200],
  'a broken encoding': ['/v2/sandboxes?metadata=%zz', 400],
};
const asked: Attack[] = Object.entries(queries).map(([what, [path, expected]]) => [
  `a list is asked with ${what}`,
  async () => {
    const answer = await platform.call('GET', path);
    expect({ what, status: answer.status }).toEqual({ what, status: expected });
    expect(textOf(answer)).not.toContain(victim.sandboxId);
  },
]);

/** Targets by which a webhook would make the platform send something into its own network. */
const targets = [
  'http://127.0.0.1/',
  'http://localhost/',
  'http://LOCALHOST./',
  'http://a.localhost/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://0.0.0.0/',
  'http://0/',
  'http://2130706433/',
  'http://0x7f.1/',
  'http://0177.0.0.1/',
  'http://127.1/',
  'http://169.254.169.254/latest/meta-data/',
  'http://10.0.0.1/',
  'http://192.168.1.1/',
  'http://172.16.0.1/',
  'http://100.64.0.1/',
  'http://[fe80::1]/',
  'http://[fd00::1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://224.0.0.1/',
  'file:///etc/passwd',
  'gopher://example.com/',
  'ftp://example.com/',
  'javascript:alert(1)',
  'http://user:password@example.com/',
  '//example.com/',
  'http://',
  'unix:///run/x.sock',
];
const webhooks: Attack[] = targets.map(url => [
  `a webhook to ${url}`,
  async () => {
    const answer = await platform.call('POST', '/events/webhooks', {
      name: 'hook',
      url,
      events: ['sandbox.lifecycle.killed'],
    });
    expect({ url, status: answer.status }).toEqual({ url, status: 400 });
  },
]);

/** Pages of other origins, and what a browser sends by itself. */
const browser: Attack[] = [
  [
    'a page of another origin sends cookies',
    async () =>
      expect(
        await status(raw('GET', '/v2/sandboxes', { origin: 'https://evil.example', cookie: `key=${victim.key}` })),
      ).toBe(401),
  ],
  [
    'a page of another origin is told that credentials may be sent',
    async () =>
      expect(
        (await raw('GET', '/health', { origin: 'https://evil.example' })).headers.get(
          'access-control-allow-credentials',
        ),
      ).toBeNull(),
  ],
  [
    'a preflight says that any header may be sent',
    async () => {
      const { headers } = await raw('OPTIONS', '/v2/sandboxes', {
        origin: 'https://evil.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'x-atoll-control',
      });
      expect(headers.get('access-control-allow-headers')).not.toMatch(/\*|x-atoll/i);
      expect(headers.get('access-control-allow-credentials')).toBeNull();
    },
  ],
  [
    'a preflight changes something',
    async () => {
      expect(
        await status(raw('OPTIONS', `/sandboxes/${victim.sandboxId}`, { 'access-control-request-method': 'DELETE' })),
      ).toBe(204);
      expect(await status(raw('GET', `/sandboxes/${victim.sandboxId}`, { 'x-api-key': victim.key }))).toBe(200);
    },
  ],
  [
    'a form deletes a sandbox by another method',
    async () =>
      expect(
        await status(
          raw('POST', `/sandboxes/${victim.sandboxId}?_method=DELETE`, {
            'x-http-method-override': 'DELETE',
            'x-api-key': victim.key,
          }),
        ),
      ).toBe(405),
  ],
  [
    'a secret that was shown once is kept by caches',
    async () =>
      expect(
        (
          await raw(
            'POST',
            `/admin/teams/${victim.teamId}/api-keys`,
            { 'x-admin-token': adminToken },
            { name: 'spare' },
          )
        ).headers.get('cache-control'),
      ).toBe('no-store'),
  ],
  [
    'an ID is sent back as a page',
    async () => {
      const answer = await platform.call('GET', '/sandboxes/%3Cscript%3Ealert(1)%3C%2Fscript%3E');
      expect(answer.headers.get('content-type')).toContain('application/json');
    },
  ],
];

/** Many at the same time, of which only one may succeed. */
const together = <T>(count: number, work: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)));
const races: Attack[] = [
  [
    'twenty creates at once where three sandboxes are allowed',
    async () => {
      const { key } = await platform.otherTeam('races', { concurrentSandboxes: 3 });
      const statuses = await together(20, () =>
        status(raw('POST', '/v2/sandboxes', { 'x-api-key': key }, { templateID: 'base' })),
      );
      expect(statuses.filter(one => one === 201)).toHaveLength(3);
    },
  ],
  [
    'ten kills of one sandbox',
    async () => {
      const { sandboxID } = await platform.createSandbox();
      const statuses = await together(10, () => status(platform.call('DELETE', `/sandboxes/${sandboxID}`)));
      expect(statuses.filter(one => one === 204).length).toBeGreaterThanOrEqual(1);
      expect(statuses.filter(one => ![204, 404, 409].includes(one))).toEqual([]);
    },
  ],
  [
    'a pause, a kill and a timeout of one sandbox',
    async () => {
      const { sandboxID } = await platform.createSandbox();
      const statuses = await Promise.all(
        [
          platform.call('POST', `/sandboxes/${sandboxID}/pause`),
          platform.call('DELETE', `/sandboxes/${sandboxID}`),
          platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 9 }),
        ].map(status),
      );
      expect(statuses.filter(one => one >= 500)).toEqual([]);
    },
  ],
  [
    'ten volumes of one name',
    async () => {
      const statuses = await together(10, () => status(platform.call('POST', '/volumes', { name: 'same' })));
      expect(statuses.filter(one => one === 201)).toHaveLength(1);
    },
  ],
  [
    'ten secrets of one name',
    async () => {
      const statuses = await together(10, () =>
        status(platform.call('POST', '/secrets', { name: 'same', value: 'x' })),
      );
      expect(statuses.filter(one => one === 201)).toHaveLength(1);
    },
  ],
  [
    'ten teams of one slug',
    async () => {
      const statuses = await together(10, () =>
        status(raw('POST', '/admin/teams', { 'x-admin-token': adminToken }, { name: 'Same', slug: 'same' })),
      );
      expect(statuses.filter(one => one === 201)).toHaveLength(1);
    },
  ],
  [
    'changes of ten limits of one team',
    async () => {
      const names = [
        'concurrentSandboxes',
        'concurrentBuilds',
        'lifetimeHours',
        'cpuCount',
        'memoryMiB',
        'diskMiB',
        'volumes',
      ];
      const path = `/admin/teams/${victim.teamId}`;
      await Promise.all(
        names.map((name, index) =>
          raw('PATCH', path, { 'x-admin-token': adminToken }, { limits: { [name]: index + 100 } }),
        ),
      );
      expect((await raw('PATCH', path, { 'x-admin-token': adminToken }, {})).body).toMatchObject({
        limits: Object.fromEntries(names.map((name, index) => [name, index + 100])),
      });
    },
  ],
  [
    '30 webhooks at once where 20 are allowed',
    async () => {
      const { key } = await platform.otherTeam('hooks');
      const statuses = await together(30, () =>
        status(
          raw(
            'POST',
            '/events/webhooks',
            { 'x-api-key': key },
            { name: 'h', url: 'https://receiver.example/', events: ['sandbox.lifecycle.killed'] },
          ),
        ),
      );
      expect(statuses.filter(one => one === 201).length).toBeLessThanOrEqual(20);
    },
  ],
];

/** One caller who sends requests without end. */
const rates: Attack[] = [
  [
    'a thousand requests in a moment',
    async () => {
      const { key } = await platform.otherTeam('fast', { requestsPerSecond: 5 });
      const statuses = await together(200, () => status(raw('GET', '/sandboxes', { 'x-api-key': key })));
      expect(statuses.filter(one => one === 200).length).toBeLessThanOrEqual(60);
      expect(statuses.filter(one => one === 429).length).toBeGreaterThanOrEqual(140);
      expect(await status(raw('GET', '/sandboxes', { 'x-api-key': victim.key }))).toBe(200);
    },
  ],
  [
    'few requests with long bodies',
    async () => {
      const { key } = await platform.otherTeam('long', { requestsPerSecond: 5 });
      const long = JSON.stringify({ templateID: 'base', timeout: 0, metadata: { a: 'x'.repeat(2 ** 20) } });
      const statuses: number[] = [];
      for (let i = 0; i < 10; i++)
        statuses.push(await status(raw('POST', '/v2/sandboxes', { 'x-api-key': key }, long)));
      expect(statuses.filter(one => one === 429).length).toBeGreaterThanOrEqual(5);
    },
  ],
  [
    'a team without limit of its own asks as often as it likes',
    async () => {
      const { requestsPerSecond } = (await import('../../src/api/team/rules/limits.ts')).defaultLimits;
      expect(requestsPerSecond).toBeGreaterThan(0);
    },
  ],
];

attackWall({ name: 'api', atLeast: 300 }, [
  ...foreign,
  ...confused,
  ...assignments,
  ...strict,
  ...bodies,
  ...encodings,
  ...credentials,
  ...volumeTokens,
  ...uploads,
  ...pages,
  ...asked,
  ...webhooks,
  ...browser,
  ...races,
  ...rates,
]);
