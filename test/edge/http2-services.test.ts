import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:http2';
import { localAuthority } from '../../src/supervisor/certificates/local-authority.ts';
import { type Fixture, startFixture } from './support/fixture.ts';
import { type Http2Service, startHttp2Service } from './support/http2-service.ts';
import { flag, frame, frameType, framesOf, headFrame, preface, setting } from '../attacks/support/http2-frames.ts';
import { RawSocket, startRawServer } from './support/raw-socket.ts';

// Services that speak only HTTP/2, used by clients that speak HTTP/1.1.

setDefaultTimeout(30_000);
let folder: string;
let fixture: Fixture;
let clear: Http2Service;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'edge-http2-services-'));
  localAuthority(folder, ['localhost']);
  fixture = startFixture();
  clear = await startHttp2Service();
});
afterAll(async () => {
  await clear[Symbol.asyncDispose]();
  await fixture[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** A sandbox whose port 80 is the service's; nobody knows its protocol yet. */
function sandboxWith(id: string, service: { port: number }, ingress: { httpsPorts?: number[] } = {}) {
  fixture.sandbox(id, { ingress });
  fixture.mapPort(80, service.port);
  const headers = { host: `80-${id}.localhost` };
  return (path: string, init: RequestInit = {}) =>
    fetch(new URL(path, fixture.url), { ...init, headers: { ...headers, ...init.headers } });
}

test('a request without a body, one with, and those that follow', async () => {
  const ask = sandboxWith('first', clear);
  const answer = await ask('/one?x=1', { headers: { 'x-mine': 'yes' } });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({
    method: 'GET',
    path: '/one?x=1',
    authority: '80-first.localhost',
    mine: 'yes',
    forwarded: 'http',
    body: '',
  });
  expect(answer.headers.get('x-by')).toBe('http2');
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
    expect(await (await ask('/', { method, body: 'text' })).json()).toMatchObject({ method, body: 'text' });
});

test('the very first request comes with a body', async () => {
  const ask = sandboxWith('post', clear);
  const body = 'x'.repeat(3_000_000);
  expect(await (await ask('/length', { method: 'POST', body })).text()).toBe('3000000');
});

/** The service's answer to a request that is sent unchanged. */
async function askRaw(head: string, body = ''): Promise<{ status: string; lines: string[]; behind: string[] }> {
  const client = await RawSocket.connect(fixture.port);
  client.send(`${head}Connection: close\r\n\r\n${body}`);
  await client.until(({ ended }) => ended);
  client.close();
  const { received } = client;
  const said = /\{.*\}/s.exec(received)?.[0] ?? '{}';
  return { status: received.slice(0, received.indexOf('\r\n')), lines: [], behind: [], ...JSON.parse(said) };
}

test('fields behind a body pass as they came, but for those of the connection', async () => {
  sandboxWith('behind', clear);
  const trailers = 'user-agent: a\r\nuser-agent: b\r\nkeep-alive: c\r\nhttp2-settings: d\r\nx-sum: e\r\n';
  for (let round = 0; round < 2; round++) {
    const head = 'POST / HTTP/1.1\r\nHost: 80-behind.localhost\r\nTransfer-Encoding: chunked\r\n';
    const { status, behind } = await askRaw(head, `1\r\nx\r\n0\r\n${trailers}\r\n`);
    // A request with a body may have to be repeated while the protocol is not known.
    if (round === 0 && status.includes(' 503 ')) continue;
    expect([status, behind]).toEqual(['HTTP/1.1 200 -', ['user-agent', 'a', 'user-agent', 'b', 'x-sum', 'e']]);
  }
});

test('fields that come twice, or have the name of what objects inherit, pass as they came', async () => {
  const ask = sandboxWith('twice', clear);
  expect((await ask('/')).status).toBe(200);
  const sent = {
    'user-agent': ['a', 'b'],
    'content-type': ['text/a', 'text/b'],
    authorization: ['Basic a', 'Basic b'],
    'x-list': ['1', '2'],
    constructor: ['mine'],
  };
  const fields = Object.entries(sent).flatMap(([name, values]) => values.map(value => [name, value] as const));
  fields.push(['__proto__', 'mine']);
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const { status, lines } = await askRaw(`GET / HTTP/1.1\r\nHost: 80-twice.localhost\r\n${head}`);
  expect(status).toBe('HTTP/1.1 200 -');
  const names = new Set(fields.map(([name]) => name));
  const got = lines.flatMap((name, at) => (at % 2 === 0 && names.has(name) ? [[name, lines[at + 1]]] : []));
  expect(got).toEqual(fields.map(field => [...field]));
  while (fixture.edge.stats().inSandboxes > 0) await Bun.sleep(2);
});

test('a length of 0 is one, whatever the method', async () => {
  const ask = sandboxWith('empty', clear);
  expect((await ask('/')).status).toBe(200);
  for (const method of ['GET', 'HEAD', 'DELETE', 'POST', 'PUT', 'OPTIONS']) {
    const { status } = await askRaw(`${method} / HTTP/1.1\r\nHost: 80-empty.localhost\r\nContent-Length: 0\r\n`);
    expect([method, status]).toEqual([method, 'HTTP/1.1 200 -']);
  }
});

test('answers without a body, and HEAD', async () => {
  const ask = sandboxWith('bare', clear);
  expect((await ask('/204')).status).toBe(204);
  const unchanged = await ask('/304');
  expect([unchanged.status, unchanged.headers.get('etag')]).toEqual([304, '"one"']);
  const head = await ask('/large', { method: 'HEAD' });
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '2000000', '']);
  expect((await (await ask('/large')).arrayBuffer()).byteLength).toBe(2_000_000);
});

test('events come as they are sent', async () => {
  const ask = sandboxWith('events', clear);
  const answer = await ask('/events');
  const reader = (answer.body ?? new ReadableStream()).getReader();
  const next = async () => Buffer.from((await reader.read()).value ?? []).toString();
  expect(await next()).toBe('data: one\n\n');
  // The second event is sent once the first was read, by another request at the same time.
  expect(await (await ask('/go')).json()).toMatchObject({ path: '/go' });
  expect(await next()).toBe('data: two\n\n');
  expect((await reader.read()).done).toBe(true);
});

test('a service within TLS that agrees to nothing but HTTP/2', async () => {
  await using secure = await startHttp2Service(join(folder, 'server-key.pem'), join(folder, 'server.pem'));
  const ask = sandboxWith('tls', secure, { httpsPorts: [80] });
  expect(await (await ask('/', { method: 'POST', body: 'first' })).json()).toMatchObject({ body: 'first' });
  expect(await (await ask('/again')).json()).toMatchObject({ path: '/again' });
});

test('another service on the port is asked in what it speaks', async () => {
  const former = await startHttp2Service();
  const ask = sandboxWith('changing', former);
  expect((await ask('/')).headers.get('x-by')).toBe('http2');
  await former[Symbol.asyncDispose]();
  using old = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('old') });
  fixture.mapPort(80, old.port ?? 0);
  // The first request finds out.
  expect((await ask('/')).status).toBe(503);
  expect(await (await ask('/')).text()).toBe('old');
  await using next = await startHttp2Service();
  fixture.mapPort(80, next.port);
  await old.stop(true);
  expect((await ask('/')).headers.get('x-by')).toBe('http2');
});

test('who wants to switch protocols is told that the service can’t', async () => {
  const ask = sandboxWith('upgrade', clear);
  const answer = await ask('/', { headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'x' } });
  expect(answer.status).toBe(503);
});

const greeting = frame(frameType.settings, 0, 0);
const farewell = frame(frameType.goaway, 0, 0, Buffer.alloc(8));

/** Answers the request on an HTTP/2 connection, and acknowledges nothing. */
async function answerOn(connection: RawSocket): Promise<void> {
  const isAsked = () =>
    framesOf(Buffer.from(connection.received, 'latin1').subarray(preface.length)).some(
      ({ type }) => type === frameType.headers,
    );
  await connection.until(isAsked);
  connection.send(Buffer.concat([greeting, headFrame(1, [[':status', '200']], flag.endHeaders | flag.endStream)]));
}

/** The status of a request that arrives in HTTP/2. */
async function askInHttp2(authority: string): Promise<number | undefined> {
  const session = connect(fixture.url);
  const stream = session.request({ ':method': 'POST', ':authority': authority, ':path': '/' });
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  stream.on('response', headers => resolve(headers[':status']));
  stream.on('close', () => resolve(undefined));
  stream.on('error', () => {});
  stream.end('x');
  try {
    return await promise;
  } finally {
    session.destroy();
  }
}

test('a service that says farewell between two requests is asked over another connection', async () => {
  using server = startRawServer();
  const ask = sandboxWith('farewell', server);
  const first = ask('/');
  const old = await server.accept();
  await old.expect('\r\n\r\n');
  old.send(greeting);
  let kept = await server.accept();
  await answerOn(kept);
  expect((await first).status).toBe(200);
  const next = [
    async () => (await ask('/', { method: 'POST', body: 'x' })).status,
    () => askInHttp2('80-farewell.localhost'),
  ];
  for (const again of next) {
    kept.take(kept.received.length);
    kept.send(Buffer.concat([farewell, frame(frameType.ping, 0, 0, Buffer.alloc(8))]));
    // The edge has read it once it closes the connection, or answers what came behind it.
    await kept.until(({ ended, received }) => ended || received.length > 0);
    const status = again();
    kept = await server.accept();
    await answerOn(kept);
    expect(await status).toBe(200);
  }
  while (fixture.edge.stats().inSandboxes > 0) await Bun.sleep(2);
});

test('a service that opens its windows and answers without reading is sent no more than has a bound', async () => {
  using server = startRawServer();
  const ask = sandboxWith('deaf', server);
  const first = ask('/');
  const old = await server.accept();
  await old.expect('\r\n\r\n');
  old.send(greeting);
  const kept = await server.accept();
  await answerOn(kept);
  expect((await first).status).toBe(200);
  kept.send(frame(frameType.settings, 0, 0, setting(4, 2 ** 31 - 1)));
  kept.send(frame(frameType.window, 0, 0, Buffer.from([0x7f, 0, 0, 0])));
  kept.pause();
  const { stats } = fixture.edge;
  const most = 500;
  let answered = 0;
  for (let isOver = true; isOver && answered < most;) {
    const answer = ask('/', { method: 'POST', body: 'x'.repeat(60_000) });
    while (stats().inSandboxes === 0) await Bun.sleep(1);
    kept.send(headFrame(3 + 2 * answered, [[':status', '200']], flag.endHeaders | flag.endStream));
    expect((await answer).status).toBe(200);
    answered++;
    // A request whose body has not reached the service yet goes on.
    for (let wait = 0; wait < 100 && stats().inSandboxes > 0; wait++) await Bun.sleep(2);
    isOver = stats().inSandboxes === 0;
  }
  expect(answered).toBeLessThan(most);
  kept.reset();
  while (stats().inSandboxes > 0) await Bun.sleep(2);
});
