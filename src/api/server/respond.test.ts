import { afterAll, expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { turnsOfReads } from '../../base/concurrency/long-reads.ts';
import { AtollError } from '../../base/error.ts';
import { JsonText } from '../../base/json-text.ts';
import { createLog } from '../../base/telemetry/log.ts';
import { createApiKey } from '../credential/rules/api-keys.ts';
import { CredentialCache } from '../credential/rules/cache.ts';
import { RateLimiter } from '../credential/rules/rate-limit.ts';
import { openStore } from '../database/database.ts';
import { AuditBacklog } from '../event/rules/audit-backlog.ts';
import { readAudit } from '../event/rules/audit.ts';
import { compileRoute } from '../http/compile.ts';
import { routeTable } from '../http/match.ts';
import { route, type Route } from '../http/route.ts';
import { createMeasures } from '../metrics/measures.ts';
import { createTeam } from '../team/rules/provision-team.ts';
import { sessionCookie } from '../session/cookie.ts';
import { respond, type RespondDeps } from './respond.ts';

const store = await openStore({ kind: 'sqlite', path: ':memory:' });
const { db } = store;
afterAll(() => store[Symbol.asyncDispose]());

const now = { us: 1e15, ms: 0 };
const clock = () => now.us++;
const lines: { level: string; message: string; [field: string]: unknown }[] = [];
const log = createLog('debug', line => void lines.push(JSON.parse(line)));
const measures = createMeasures();
const did: string[] = [];
const disk: { refuses?: Error | undefined } = {};
const limits = { requestsPerSecond: 100 };
const parts: RespondDeps = {
  ...{
    adminToken: 'admin',
    metricsToken: null,
    clock,
    credentials: new CredentialCache(store, clock),
    db,
    measures,
    log,
  },
  ...{ domain: 'example.org', seed: new Uint8Array(32).fill(1), auditBacklog: new AuditBacklog(log) },
  limitsOf: () => limits as never,
  rateLimiter: new RateLimiter(() => now.ms),
  readsInTurn: turnsOfReads(),
  wrongCredentials: new RateLimiter(() => now.ms),
  async flushed() {
    did.push('flushed');
    if (disk.refuses) throw disk.refuses;
  },
};

const Body = Type.Object({ n: Type.Optional(Type.Number()) });
const Answer = Type.Object({ n: Type.Number() });
const seen: Record<string, unknown>[] = [];
const ok = { 200: { description: 'Done', schema: Answer } };
const base = { summary: '', auth: 'team' as const };
const pieces = () => new Response('bytes').body as ReadableStream<Uint8Array>;

/** How long `/pieces` occupies the thread. */
const piecesMs = 40;

const routes = [
  route({
    ...{ ...base, operationId: 'look', method: 'GET', path: '/look/{id}', responses: ok },
    params: Type.Object({ id: Type.String() }),
    query: Type.Object({ q: Type.Optional(Type.String()) }),
    handle: async (_, input) => {
      seen.push(input as never);
      return { status: 200, body: { n: 1 }, headers: { 'X-Own': 'yes' } };
    },
  }),
  route({
    ...{ ...base, operationId: 'rows', method: 'GET', path: '/rows', long: true, responses: ok },
    handle: async () => {
      did.push('rows');
      return { status: 200, body: { n: 1 } };
    },
  }),
  route({
    ...{ ...base, operationId: 'pieces', method: 'GET', path: '/pieces/{of}', long: true, responses: ok },
    params: Type.Object({ of: Type.String() }),
    handle: async (_, { params, othersHad }) => {
      const since = performance.now();
      while (performance.now() - since < piecesMs);
      if (params.of === 'others') othersHad(performance.now() - since);
      return { status: 200, body: { n: 1 } };
    },
  }),
  route({
    ...{ ...base, operationId: 'change', method: 'POST', path: '/change', body: Body, responses: ok },
    handle: async (_, { body, audit }) => {
      did.push('handled');
      audit({ target: 'thing' });
      audit({ after: { n: body.n } });
      if (body.n === 400) throw new AtollError('invalid', 'not this');
      if (body.n === 500) throw new Error('a secret of ours');
      if (body.n === 503)
        throw new AtollError('unavailable', 'away', { retryAfterSeconds: 7, fields: { node: 'n1' }, cause: 'a cable' });
      return { status: 200, body: { n: body.n === undefined ? 0 : body.n } };
    },
  }),
  route({
    ...{ ...base, operationId: 'maybe', method: 'PUT', path: '/maybe', body: Body, bodyOptional: true, responses: ok },
    ...{ changes: false, durable: false, noStore: true },
    handle: async (_, { body }) => ({ status: 200, body: new JsonText<{ n: number }>(`{"n": ${body.n ?? 0}}`) }),
  }),
  route({
    ...{ ...base, operationId: 'wrong', method: 'GET', path: '/wrong', responses: ok },
    handle: async () => ({ status: 200, body: { n: 'text' as never } }),
  }),
  route({
    ...{ ...base, operationId: 'bytes', method: 'GET', path: '/bytes' },
    responses: { 200: { description: '', binary: true } },
    handle: async () => ({ status: 200, stream: pieces() }),
  }),
  route({
    ...{ ...base, operationId: 'events', method: 'GET', path: '/events' },
    responses: { 200: { description: '', binary: true, contentType: 'text/event-stream' } },
    handle: async () => ({ status: 200, stream: pieces() }),
  }),
  route({
    ...{ ...base, auth: 'none', operationId: 'text', method: 'GET', path: '/text' },
    responses: { 200: { description: '', schema: Type.String(), contentType: 'text/plain' } },
    handle: async () => ({ status: 200, body: 'plain' }),
  }),
  route({
    ...{ ...base, operationId: 'nothing', method: 'DELETE', path: '/nothing', durable: false },
    responses: { 204: { description: '' } },
    handle: async () => ({ status: 204 }),
  }),
  route({
    ...{ ...base, operationId: 'upload', method: 'PUT', path: '/upload', upload: true, changes: false },
    responses: ok,
    handle: async (_, { upload }) => ({
      status: 200,
      body: { n: (await new Response(upload.stream).text()).length + (upload.length ?? -1) * 1000 },
    }),
  }),
] as unknown as Route<RespondDeps>[];
const table = routeTable(routes.map(one => compileRoute(one, true)));

const team = await createTeam(parts, { name: 'team', slug: 'team' });
const { text: key } = await createApiKey(parts, team, 'key');

type Asked = { headers?: Record<string, string>; isReady?: boolean; withKey?: boolean } & Pick<
  RequestInit,
  'body' | 'signal'
>;

function ask(method: string, path: string, { body, headers, signal, isReady = true, withKey = true }: Asked = {}) {
  lines.length = did.length = 0;
  const request = new Request(`http://api.example.org${path}`, {
    method,
    headers: { host: 'api.example.org', ...(withKey && { 'x-api-key': key }), ...headers },
    ...(body !== undefined && { body }),
    ...(signal && { signal }),
  });
  return respond(parts, table, () => isReady, request);
}
const audited = async () => (await readAudit(db, {}, {})).items.map(({ operation, status }) => [operation, status]);

test('a route gets its input, its caller and the client’s address', async () => {
  const headers = {
    ...{ 'x-forwarded-for': '192.0.2.7', 'x-forwarded-proto': 'https', 'user-agent': 'test', 'content-length': '0' },
    ...{ 'sec-fetch-site': 'same-origin' },
  };
  const answer = await ask('GET', '/look/a%20b?q=x%26y', { headers });
  expect([answer.status, await answer.json()]).toEqual([200, { n: 1 }]);
  expect(seen.pop()).toMatchObject({
    ...{
      params: { id: 'a b' },
      query: { q: 'x&y' },
      caller: { kind: 'team' },
      address: '192.0.2.7',
      userAgent: 'test',
    },
    ...{ origin: 'https://api.example.org', sameOrigin: true, upload: { length: 0 } },
  });
  await ask('GET', '/look/b');
  expect(seen.pop()).toMatchObject({
    ...{ query: {}, address: '', userAgent: '', sameOrigin: false, upload: { length: null } },
    origin: 'http://api.example.org',
  });
  expect(answer.headers.get('x-own')).toBe('yes');
  expect(answer.headers.get('cache-control')).toBeNull();
});

test('a caller is told the rest of its rate, and is admitted as long as its key is valid', async () => {
  now.ms += 60_000;
  const answer = await ask('GET', '/look/a');
  expect(['limit', 'remaining', 'reset'].map(name => answer.headers.get(`ratelimit-${name}`))).toEqual([
    '1000',
    '999',
    '1',
  ]);
  const input = seen.pop() as { isStillLetIn(): Promise<boolean> };
  expect(await input.isStillLetIn()).toBe(true);
  expect((await ask('GET', '/text', { withKey: false })).headers.has('ratelimit-limit')).toBe(false);
  limits.requestsPerSecond = 0.1;
  now.ms += 60_000;
  expect((await ask('GET', '/look/a')).status).toBe(200);
  const refused = await ask('GET', '/look/a');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10']);
  limits.requestsPerSecond = 100;
  now.ms += 60_000;
});

test('a caller that reads many rows repeatedly delays nobody else, and once gone gets no answer', async () => {
  const gone = new AbortController();
  // A later request clears what was done before.
  const all = Array.from({ length: 100 }, () => ask('GET', '/rows'));
  const left = ask('GET', '/rows', { signal: gone.signal });
  gone.abort();
  expect((await ask('GET', '/look/a')).status).toBe(200);
  expect(did.length).toBeLessThan(50);
  for (const answer of await Promise.all(all)) expect(answer.status).toBe(200);
  expect([did.length, (await left).status]).toEqual([100, 499]);
  now.ms += 60_000;
});

test('the thread’s time counts as requests, except the time that went to others', async () => {
  const left = async (path: string) => Number((await ask('GET', path)).headers.get('ratelimit-remaining'));
  const before = await left('/look/a');
  await left('/pieces/others');
  const between = await left('/look/a');
  expect(before - between).toBeLessThan(piecesMs / 4);
  await left('/pieces/own');
  expect(between - (await left('/look/a'))).toBeGreaterThanOrEqual(piecesMs / 2);
  now.ms += 60_000;
});

test('an unknown route or method is refused with the possible ones', async () => {
  const told = async (method: string, path: string) => {
    const answer = await ask(method, path);
    return [answer.status, answer.headers.get('allow'), ((await answer.json()) as { message: string }).message];
  };
  expect(await told('GET', '/none?q')).toEqual([404, null, 'No such route: GET /none']);
  expect((await told('GET', '/files'))[2]).toContain('no running sandbox is named by the host');
  expect(await told('POST', '/look/a')).toEqual([405, 'GET', 'POST is not allowed here; allowed: GET']);
  expect((await told('HEAD', '/bytes')).slice(0, 2)).toEqual([405, 'GET']);
  expect((await ask('HEAD', '/look/a')).status).toBe(200);
  expect((await told('GET', '/look/%ff'))[0]).toBe(400);
  expect((await ask('OPTIONS', '/none')).status).toBe(204);
});

test('while the platform starts nothing is done', async () => {
  const answer = await ask('POST', '/change', { body: '{}', isReady: false });
  expect([answer.status, answer.headers.get('retry-after'), did]).toEqual([503, '1', []]);
  expect((await ask('GET', '/none', { isReady: false })).status).toBe(404);
});

test('nobody is admitted without a credential, and guessing is slowed down', async () => {
  expect((await ask('GET', '/look/a', { withKey: false })).status).toBe(401);
  const guess = () => ask('GET', '/look/a', { headers: { 'x-api-key': 'no', 'x-forwarded-for': '192.0.2.1' } });
  const statuses: number[] = [];
  for (let time = 0; time < 51; time++) statuses.push((await guess()).status);
  expect([statuses.indexOf(429), statuses.at(-2)]).toEqual([50, 401]);
  now.ms += 60_000;
});

test('if the disk refuses to keep a change, the answer does not suggest that nothing changed', async () => {
  disk.refuses = new AtollError('unavailable', 'The database can’t be written; nothing was changed.');
  const answer = await ask('POST', '/change', { body: '{"n":3}' });
  disk.refuses = undefined;
  expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
    500,
    'It was done, but the disk of the platform has refused to keep it: a loss of power may undo it',
  ]);
  expect(did).toEqual(['handled', 'flushed']);
  expect(lines).toMatchObject([{ level: 'error', cause: expect.stringContaining('nothing was changed') }]);
});

test('a change is handled, recorded, and durable before it is answered', async () => {
  const before = await audited();
  expect((await ask('POST', '/change', { body: '{"n":3}' })).status).toBe(200);
  expect(did).toEqual(['handled', 'flushed']);
  const [entry] = (await readAudit(db, {}, {})).items;
  expect(entry).toMatchObject({
    operation: 'change',
    target: 'thing',
    after: { n: 3 },
    status: 200,
    actorKind: 'apiKey',
  });
  await ask('DELETE', '/nothing');
  expect(did).toEqual([]);
  await ask('GET', '/look/a');
  await ask('PUT', '/maybe');
  expect(did).toEqual([]);
  expect(await audited()).toHaveLength(before.length + 2);
});

test('a refused change is not recorded, and a failed one is', async () => {
  const entries = async (n: number) => {
    const before = (await audited()).length;
    const answer = await ask('POST', '/change', { body: JSON.stringify({ n }) });
    return [answer, (await readAudit(db, {}, {})).items.slice(0, (await audited()).length - before)] as const;
  };
  const [refused, none] = await entries(400);
  expect([refused.status, none, lines.map(({ level }) => level)]).toEqual([400, [], ['debug']]);
  const [broken, [one]] = await entries(500);
  expect([broken.status, await broken.json(), one?.status]).toEqual([
    500,
    { code: 500, message: 'Internal error' },
    500,
  ]);
  expect(lines).toMatchObject([
    { level: 'error', message: 'request failed', stack: expect.stringContaining('secret') },
  ]);
  const [away, [two]] = await entries(503);
  expect([away.status, away.headers.get('retry-after'), two?.status]).toEqual([503, '7', 503]);
  expect(lines).toMatchObject([{ level: 'error', node: 'n1', cause: 'a cable', method: 'POST', path: '/change' }]);
});

test('a body is required unless it is optional, and null is not a body', async () => {
  const messageOf = async (answer: Promise<Response>) => ((await (await answer).json()) as { message: string }).message;
  expect(await messageOf(ask('POST', '/change'))).toBe('request body: is required');
  expect((await ask('POST', '/change', { body: 'null' })).status).toBe(400);
  expect((await ask('PUT', '/maybe', { body: 'null' })).status).toBe(400);
  expect((await ask('POST', '/change', { body: '{' })).status).toBe(400);
  expect((await ask('POST', '/change', { body: `{"n":1${' '.repeat(2 ** 20)}}` })).status).toBe(413);
  const maybe = await ask('PUT', '/maybe');
  expect([maybe.status, maybe.headers.get('cache-control'), await maybe.text()]).toEqual([200, 'no-store', '{"n": 0}']);
  expect(maybe.headers.get('content-type')).toBe('application/json');
  expect(await (await ask('PUT', '/maybe', { body: '{"n":4}' })).json()).toEqual({ n: 4 });
});

test('a long body counts as the number of requests that take as long', async () => {
  now.ms += 60_000;
  await ask('POST', '/change', { body: `{"n":1${' '.repeat(10 * 16_384)}}` });
  expect((await ask('GET', '/look/a')).headers.get('ratelimit-remaining')).toBe('988');
});

test('bytes, texts and empty answers are sent as such', async () => {
  const told = async (method: string, path: string, asked: Asked = {}) => {
    const answer = await ask(method, path, asked);
    return [answer.status, answer.headers.get('content-type')?.split(';')[0] ?? null, await answer.text()];
  };
  expect(await told('GET', '/bytes')).toEqual([200, 'application/octet-stream', 'bytes']);
  expect(await told('GET', '/events')).toEqual([200, 'text/event-stream', 'bytes']);
  expect(await told('GET', '/text', { withKey: false })).toEqual([200, 'text/plain', 'plain']);
  expect(await told('DELETE', '/nothing')).toEqual([204, null, '']);
  const body = { body: 'uploaded', headers: { 'content-length': '8' } };
  expect(await told('PUT', '/upload', body)).toEqual([200, 'application/json', '{"n":8008}']);
});

test('an undocumented answer is a defect', async () => {
  expect(await (await ask('GET', '/wrong')).json()).toMatchObject({ message: 'n: must be a number' });
});

test('requests are counted by route and status', async () => {
  await ask('GET', '/none');
  const counts = measures.metrics().find(({ name }) => name === 'atoll_http_requests_total');
  const text = JSON.stringify(counts);
  for (const one of ['/look/{id}', '"none"', '/change']) expect(text).toContain(one);
  const inFlight = measures.metrics().find(({ name }) => name === 'atoll_http_requests_in_flight');
  expect(JSON.stringify(inFlight)).toContain('0');
});

test('a session is accepted only from a page of this very origin', async () => {
  const cookie = { cookie: `${sessionCookie}=${'0'.repeat(64)}` };
  expect((await ask('GET', '/look/a', { withKey: false, headers: cookie })).status).toBe(401);
});

test('between long bodies, which take long to check, others are answered', async () => {
  const body = JSON.stringify({ n: 1, unknown: 'x'.repeat(20_000) });
  const all = Array.from({ length: 100 }, () => ask('POST', '/change', { body }));
  expect((await ask('GET', '/look/a')).status).toBe(200);
  expect(did.filter(what => what === 'handled').length).toBeLessThan(50);
  for (const answer of await Promise.all(all)) expect(answer.status).toBe(200);
  expect(did.filter(what => what === 'handled')).toHaveLength(100);
  now.ms += 60_000;
});
