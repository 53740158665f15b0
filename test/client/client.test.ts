import { afterAll, expect, test } from 'bun:test';
import { atoll, AtollFailure, type AtollOptions } from '../../clients/typescript/src/index.ts';

// The client against a server that gives prescribed answers and records its requests.

type Asked = { method: string; target: string; headers: Headers; body: string };
const asked: Asked[] = [];
let answers: (() => Response)[] = [];
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname, search } = new URL(request.url);
    asked.push({
      method: request.method,
      target: pathname + search,
      headers: request.headers,
      body: await request.text(),
    });
    return answers.shift()?.() ?? Response.json({ message: 'nothing more was to be asked' }, { status: 418 });
  },
});
afterAll(() => server.stop(true));

function clientFor(next: (() => Response)[], options: AtollOptions = {}) {
  asked.length = 0;
  answers = next;
  return atoll({ url: `http://127.0.0.1:${server.port}/`, apiKey: 'e2b_key', ...options });
}
const empty = () => new Response(null, { status: 204 });
const failing =
  (status: number, headers: Record<string, string> = {}, code = 'busy') =>
  () =>
    Response.json({ code: status, message: 'not now', error_code: code }, { status, headers });
const failureOf = (promise: Promise<unknown>): Promise<AtollFailure> =>
  promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => (error instanceof AtollFailure ? error : Promise.reject(error as Error)),
  );

test('members go where the operation has them: path, query, header, body', async () => {
  const client = clientFor([() => Response.json([]), () => Response.json({ sandboxID: 'x' }, { status: 201 }), empty]);
  await client.listSandboxesV2({ state: ['running', 'paused'], metadata: 'a=b&c=d', limit: 3 });
  await client.createSandboxV2({ idempotencyKey: 'mine', body: { templateID: 'base' } });
  await client.pauseSandbox({ sandboxID: '../admin/teams?x#y' });
  expect(asked.map(({ method, target, body }) => ({ method, target, body }))).toEqual([
    { method: 'GET', target: '/v2/sandboxes?metadata=a%3Db%26c%3Dd&state=running%2Cpaused&limit=3', body: '' },
    { method: 'POST', target: '/v2/sandboxes', body: '{"templateID":"base"}' },
    { method: 'POST', target: '/sandboxes/..%2Fadmin%2Fteams%3Fx%23y/pause', body: '' },
  ]);
  expect(asked[1]?.headers.get('idempotency-key')).toBe('mine');
  expect(asked[1]?.headers.get('content-type')).toBe('application/json');
  expect(asked.every(({ headers }) => headers.get('x-api-key') === 'e2b_key')).toBe(true);
  for (const sandboxID of ['', '.', '..'])
    expect(client.deleteSandbox({ sandboxID })).rejects.toThrow('sandboxID must be a text');
  expect(asked).toHaveLength(3);
});

test('credentials are the ones that were given, and no other is sent beside them', async () => {
  const client = clientFor([empty, empty], { apiKey: undefined as never, accessToken: 'sk_e2b_1', teamId: 'team' });
  await client.deleteSandbox({ sandboxID: 'x' });
  expect(Object.fromEntries(asked[0]!.headers)).toMatchObject({
    authorization: 'Bearer sk_e2b_1',
    'x-team-id': 'team',
  });
  expect(asked[0]?.headers.has('x-api-key')).toBe(false);
  await client.deleteVolumePath({ volumeID: 'v', path: '/a' }, { token: 'of the volume' });
  expect(asked[1]?.headers.get('authorization')).toBe('Bearer of the volume');
});

test('a failure says which operation, why, and when to ask again', async () => {
  const client = clientFor([failing(409, { 'Retry-After': '7' })]);
  const failure = await failureOf(client.pauseSandbox({ sandboxID: 'x' }));
  expect({ ...failure }).toMatchObject({ operation: 'pauseSandbox', status: 409, code: 'busy', retryAfterSeconds: 7 });
  expect(failure.message).toBe('pauseSandbox: not now');
  expect(asked).toHaveLength(1);
});

test('what changed nothing is asked again, what may have changed something is not', async () => {
  const away = { 'Retry-After': '0' };
  await clientFor([failing(503, away), failing(429, away), empty]).pauseSandbox({ sandboxID: 'x' });
  expect(asked).toHaveLength(3);
  const failure = await failureOf(clientFor([failing(503, away), failing(503, away), failing(503, away)]).getHealth());
  expect(failure.status).toBe(503);
  await failureOf(clientFor([failing(500)]).forkSandbox({ sandboxID: 'x', body: {} }));
  expect(asked).toHaveLength(1);
  const refused = { url: 'http://127.0.0.1:9', retries: 0 };
  expect((await failureOf(clientFor([], refused).getHealth())).status).toBe(0);
});

test('what may have been done is asked again where that does the same once', async () => {
  const lost = failing(500, {}, 'api_connection_lost');
  await clientFor([lost, empty]).deleteSandbox({ sandboxID: 'x' });
  expect(asked).toHaveLength(2);
  await clientFor([lost, () => Response.json([], { status: 201 })]).forkSandbox({ sandboxID: 'x', body: {} });
  const [first, second] = asked.map(({ headers }) => headers.get('idempotency-key'));
  expect(second).toBe(first!);
  await failureOf(clientFor([lost]).pauseSandbox({ sandboxID: 'x' }));
  expect(asked).toHaveLength(1);
});

test('a create that is tried again has the same key', async () => {
  const away = failing(503, { 'Retry-After': '0' });
  await clientFor([away, () => Response.json({}, { status: 201 })]).createSandboxV2({ body: { templateID: 'base' } });
  const [first, second] = asked.map(({ headers }) => headers.get('idempotency-key'));
  expect(first).toMatch(/^[0-9a-f-]{36}$/);
  expect(second).toBe(first!);
});

test('an answer that never comes ends with the time limit, and with the caller’s signal', async () => {
  const hangs = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Promise<Response>(() => {}) });
  const client = atoll({ url: `http://127.0.0.1:${hangs.port}`, apiKey: 'x', timeoutMs: 50, retries: 0 });
  expect((await failureOf(client.getHealth())).message).toBe('getHealth: no answer within 50 ms');
  expect((await failureOf(client.getHealth({}, { signal: AbortSignal.abort() }))).status).toBe(0);
  await hangs.stop(true);
});

test('a stream of events goes on behind the last one over new connections, until it is left', async () => {
  const stream = (text: string) => () => new Response(text, { headers: { 'Content-Type': 'text/event-stream' } });
  const client = clientFor([
    stream('event: ready\nid: 4\ndata: {"after":4}\n\nid: 5\ndata: {"id":"a"}\n\n:\n\nid: 6\ndata: {"id":'),
    failing(503, { 'Retry-After': '0' }),
    stream('event: ready\nid: 5\ndata: {}\n\nid: 6\r\ndata: {"id":\r\ndata: "b"}\r\n\r\n'),
    stream('id: 7\ndata: {"id":"c"}\n\n'),
  ]);
  const seen: string[] = [];
  for await (const { id } of client.streamEvents()) {
    seen.push(id);
    if (id === 'c') break;
  }
  expect(seen).toEqual(['a', 'b', 'c']);
  expect(asked.map(({ target }) => target)).toEqual([
    '/events/stream',
    '/events/stream?after=5',
    '/events/stream?after=5',
    '/events/stream?after=6',
  ]);
  const toEnd = clientFor([
    stream('event: ready\nid: 0\ndata: {}\n\nid: 1\ndata: {"message":"a"}\n\n'),
    stream('id: 2\ndata: {"message":"b"}\n\nevent: end\ndata: {}\n\n'),
  ]);
  const said = await Array.fromAsync(toEnd.streamSandboxLogs({ sandboxID: 'x', tail: 5 }));
  expect(said.map(({ message }) => message)).toEqual(['a', 'b']);
  expect(asked.map(({ target }) => target)).toEqual([
    '/sandboxes/x/logs/stream?tail=5',
    '/sandboxes/x/logs/stream?after=1&tail=5',
  ]);
  const refused = clientFor([failing(401)]).streamEvents();
  expect((await failureOf(refused.next())).status).toBe(401);
});
