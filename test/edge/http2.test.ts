import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { localAuthority } from '../../src/supervisor/certificates/local-authority.ts';
import { type FixtureOptions, startFixture } from './support/fixture.ts';
import { startRawServer } from './support/raw-socket.ts';

async function startHttp2(options: FixtureOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'edge-http2-'));
  const certificate = localAuthority(folder, ['localhost']);
  const fixture = startFixture({ tls: { hostname: '127.0.0.1', port: 0, certificate }, ...options });
  const server = startRawServer();
  fixture.sandbox('one');
  fixture.mapPort(80, server.port);
  const session = connect(`https://127.0.0.1:${fixture.edge.tlsPort}`, { rejectUnauthorized: false });
  await new Promise((resolve, reject) => session.once('connect', resolve).once('error', reject));
  return {
    fixture,
    server,
    session,
    async [Symbol.asyncDispose]() {
      session.destroy();
      await fixture[Symbol.asyncDispose]();
      server[Symbol.dispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A request, and its outcome. */
function ask(session: ClientHttp2Session, headers: OutgoingHttpHeaders, endStream = true) {
  const stream = session.request({ ':authority': '80-one.localhost', ':path': '/', ...headers }, { endStream });
  const got = { stream, headers: {} as Record<string, unknown>, text: '' };
  stream.on('response', response => (got.headers = response));
  stream.on('data', (bytes: Buffer) => (got.text += bytes.toString('latin1')));
  return Object.assign(got, { over: overOf(stream) });
}

function overOf(stream: ClientHttp2Stream): Promise<'ended' | 'reset'> {
  return new Promise(resolve => {
    let failed = false;
    stream.on('error', () => (failed = true));
    stream.on('close', () => resolve(failed || stream.rstCode !== 0 ? 'reset' : 'ended'));
  });
}

test('requests of one connection go to API and sandboxes, by their own authority and headers', async () => {
  await using both = await startHttp2();
  const api = ask(both.session, { ':authority': 'localhost', ':path': '/api?x=1' });
  const routed = ask(both.session, {
    ':authority': 'localhost',
    'e2b-sandbox-id': 'one',
    'e2b-sandbox-port': '80',
    cookie: 'a=b',
  });
  const missing = ask(both.session, { ':authority': '80-no.localhost' });
  const upstream = await both.server.accept();
  const head = await upstream.expect('\r\n\r\n');
  expect(head).toStartWith('GET / HTTP/1.1\r\nHost: localhost\r\n');
  expect(head).toContain('cookie: a=b\r\n');
  expect(head).toContain('X-Forwarded-Proto: https\r\n');
  upstream.send(
    'HTTP/1.1 201 Created\r\nSet-Cookie: a\r\nClear-Site-Data: "*"\r\nX-Its: own\r\nConstructor: it\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok',
  );
  expect([await api.over, await routed.over, await missing.over]).toEqual(['ended', 'ended', 'ended']);
  expect(JSON.parse(api.text)).toMatchObject({ api: '/api' });
  expect(routed.headers).toMatchObject({ ':status': 201, 'x-its': 'own', constructor: 'it', 'content-length': '2' });
  // Headers named the sandbox: the origin is not its own.
  for (const name of ['keep-alive', 'set-cookie', 'clear-site-data']) expect(routed.headers).not.toHaveProperty(name);
  expect(routed.text).toBe('ok');
  expect(missing.headers[':status']).toBe(502);
  expect(JSON.parse(missing.text).message).toBe('The sandbox was not found');
});

test('bodies flow both ways at the same time', async () => {
  await using both = await startHttp2();
  const request = ask(both.session, { ':method': 'POST' }, false);
  request.stream.write('first');
  const upstream = await both.server.accept();
  expect(await upstream.expect('5\r\nfirst\r\n')).toContain('Transfer-Encoding: chunked\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n');
  while (request.text !== 'one') await Bun.sleep(1);
  request.stream.end('second');
  await upstream.expect('6\r\nsecond\r\n0\r\n\r\n');
  upstream.send('3\r\ntwo\r\n0\r\n\r\n');
  expect(await request.over).toBe('ended');
  expect(request.text).toBe('onetwo');
});

test('a body of known length keeps its length', async () => {
  await using both = await startHttp2();
  const request = ask(both.session, { ':method': 'POST', 'content-length': '5' }, false);
  request.stream.end('hello');
  const upstream = await both.server.accept();
  const head = await upstream.expect('\r\n\r\nhello');
  expect(head).toContain('content-length: 5\r\n');
  expect(head).not.toContain('chunked');
  upstream.send('HTTP/1.1 204 No Content\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n');
  expect(await request.over).toBe('ended');
  expect(request.headers['set-cookie']).toEqual(['a', 'b']);
});

test('a body that ends with its connection, and one of a HEAD request', async () => {
  await using both = await startHttp2();
  const old = ask(both.session, {});
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.0 200 OK\r\n\r\nall of it');
  upstream.close();
  expect([await old.over, old.text]).toEqual(['ended', 'all of it']);
  const head = ask(both.session, { ':method': 'HEAD' });
  const next = await both.server.accept();
  await next.expect('\r\n\r\n');
  next.send('HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n');
  expect([await head.over, head.headers['content-length']]).toEqual(['ended', '500']);
});

test('the end of a sandbox resets its streams and leaves the connection', async () => {
  await using both = await startHttp2();
  const cut = ask(both.session, {});
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n');
  while (cut.text !== 'one') await Bun.sleep(1);
  both.fixture.remove('one');
  expect(await cut.over).toBe('reset');
  expect(await upstream.over()).toBe('reset');
  const api = ask(both.session, { ':authority': 'localhost' });
  expect([await api.over, api.headers[':status']]).toEqual(['ended', 200]);
});

test('a truncated response is a reset, a vanished client an abort', async () => {
  await using both = await startHttp2();
  const truncated = ask(both.session, {});
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome');
  upstream.close();
  expect(await truncated.over).toBe('reset');
  const aborted = ask(both.session, {});
  const second = await both.server.accept();
  await second.expect('\r\n\r\n');
  aborted.stream.close(8);
  expect(await second.over()).toBe('reset');
  const left = ask(both.session, {});
  const third = await both.server.accept();
  await third.expect('\r\n\r\n');
  both.session.destroy();
  expect(await third.over()).toBe('reset');
  expect(await left.over).toBe('reset');
});

test('a hundred streams at once get their own answers, and large bodies pass whole', async () => {
  const size = 300_000;
  await using both = await startHttp2({
    api: async request =>
      new Response(`${new URL(request.url).pathname} ${(await request.arrayBuffer()).byteLength} ${'x'.repeat(size)}`),
  });
  const requests = Array.from({ length: 100 }, (_, i) => {
    const request = ask(both.session, { ':authority': 'localhost', ':path': `/${i}`, ':method': 'POST' }, false);
    request.stream.end(Buffer.alloc(i * 1000));
    return request;
  });
  for (const [i, request] of requests.entries()) {
    expect(await request.over).toBe('ended');
    const start = `/${i} ${i * 1000} `;
    expect(request.text.slice(0, start.length)).toBe(start);
    expect(request.text.length).toBe(start.length + size);
  }
}, 30_000);

test('a client that opens streams only to reset them is thrown out', async () => {
  await using both = await startHttp2({ dial: () => new Promise(() => {}) });
  let thrownOut = false;
  both.session.on('error', () => {});
  both.session.on('close', () => (thrownOut = true));
  for (let round = 0; round < 100 && !thrownOut; round++) {
    const streams = Array.from({ length: 20 }, () => ask(both.session, {}));
    await Bun.sleep(1);
    for (const { stream } of streams) stream.close(8);
    await Promise.all(streams.map(({ over }) => over));
  }
  expect(thrownOut).toBe(true);
  while (both.fixture.edge.stats().inSandboxes > 0) await Bun.sleep(5);
}, 20_000);

test('trailers pass both ways, but for those that decide something', async () => {
  await using both = await startHttp2();
  const stream = both.session.request(
    { ':method': 'POST', ':authority': '80-one.localhost', ':path': '/', te: 'trailers' },
    { waitForTrailers: true },
  );
  stream.on('wantTrailers', () =>
    stream.sendTrailers({ 'x-sum': '5', 'x-forwarded-for': '127.0.0.1', 'x-atoll-a': 'b', cookie: 'a=b' }),
  );
  const trailers = new Promise<Record<string, unknown>>(resolve => stream.once('trailers', resolve));
  stream.on('data', () => {});
  stream.end('hello');
  const upstream = await both.server.accept();
  expect(await upstream.expect('x-sum: 5\r\n\r\n')).toEndWith('5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Behind: a\r\n');
  upstream.send('Set-Cookie: a=b\r\nE2b-Sandbox-Id: x\r\nX-Behind: b\r\n\r\n');
  expect(await overOf(stream)).toBe('ended');
  const { [Symbol.for('nodejs.http2.sensitiveHeaders') as never]: _, ...got } = await trailers;
  expect(got).toEqual({ 'x-behind': 'a, b' });
  // The connection serves nobody else, as with trailers in HTTP/1.1.
  while (!upstream.ended) await Bun.sleep(1);
});

test('events of a server come as they are sent', async () => {
  await using both = await startHttp2();
  const events = ask(both.session, { accept: 'text/event-stream' });
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
  let expected = '';
  for (let number = 0; number < 5; number++) {
    const event = `data: ${number}\n\n`;
    upstream.send(`${event.length.toString(16)}\r\n${event}\r\n`);
    expected += event;
    while (events.text !== expected) await Bun.sleep(1);
  }
  expect(events.headers).toMatchObject({ 'content-type': 'text/event-stream' });
  events.stream.close(8);
  expect(await upstream.over()).toBe('reset');
});

/** Begins a WebSocket on a stream (RFC 8441). */
async function askWebSocket(session: ClientHttp2Session, headers: OutgoingHttpHeaders = {}) {
  if (session.remoteSettings?.enableConnectProtocol !== true)
    await new Promise(resolve => session.once('remoteSettings', resolve));
  expect(session.remoteSettings.enableConnectProtocol).toBe(true);
  const protocol = { ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'https' };
  return ask(session, { ...protocol, 'sec-websocket-version': '13', ...headers }, false);
}

test('a WebSocket on a stream is one to the service, both ways, and ends as that does', async () => {
  await using both = await startHttp2();
  const socket = await askWebSocket(both.session, { ':path': '/socket', 'sec-websocket-protocol': 'chat' });
  const upstream = await both.server.accept();
  const head = await upstream.expect('\r\n\r\n');
  expect(head).toStartWith('GET /socket HTTP/1.1\r\nHost: 80-one.localhost\r\n');
  expect(head).toMatch(/\r\nUpgrade: websocket\r\n/);
  expect(head).toMatch(/\r\nSec-WebSocket-Key: [A-Za-z0-9+/]{22}==\r\n/);
  expect(head).toMatch(/\r\nConnection: Upgrade\r\n/);
  upstream.send(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\nfirst',
  );
  while (socket.text !== 'first') await Bun.sleep(1);
  expect(socket.headers).toMatchObject({ ':status': 200, 'sec-websocket-protocol': 'chat' });
  for (const name of ['upgrade', 'connection', 'sec-websocket-accept']) expect(socket.headers).not.toHaveProperty(name);
  socket.stream.write('to the service');
  await upstream.expect('to the service');
  upstream.send('second');
  while (!socket.text.endsWith('second')) await Bun.sleep(1);
  upstream.close();
  expect(await socket.over).toBe('ended');
  // Another one, which its client breaks off.
  const second = await askWebSocket(both.session);
  const other = await both.server.accept();
  await other.expect('\r\n\r\n');
  other.send('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  while (second.headers[':status'] === undefined) await Bun.sleep(1);
  second.stream.close(8);
  expect(await other.over()).toBe('reset');
});

test('a WebSocket that is not granted is answered as any request', async () => {
  await using both = await startHttp2();
  const missing = await askWebSocket(both.session, { ':authority': '80-no.localhost' });
  expect([await missing.over, missing.headers[':status']]).toEqual(['ended', 502]);
  const refused = await askWebSocket(both.session);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
  expect([await refused.over, refused.headers[':status'], refused.text]).toEqual(['ended', 403, 'no']);
});

test('a malformed request is refused and harms no other', async () => {
  await using both = await startHttp2();
  for (const headers of [
    { ':path': 'no-slash' },
    { ':authority': 'a b' },
    { ':path': '/a b' },
    { 'content-length': 'five' },
    { ':method': 'CONNECT', ':path': undefined as unknown as string },
  ]) {
    let refused: unknown;
    try {
      const request = ask(both.session, headers);
      await request.over;
      refused = request.headers[':status'] ?? 'reset';
    } catch {
      refused = 'not sent';
    }
    expect([headers, refused === 400 || refused === 'reset' || refused === 'not sent']).toEqual([headers, true]);
  }
  expect(both.server.connections).toEqual([]);
  const api = ask(both.session, { ':authority': 'localhost' });
  expect([await api.over, api.headers[':status']]).toEqual(['ended', 200]);
});

test('HTTP/2 need not be offered', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-http1-'));
  using _ = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
  const certificate = localAuthority(folder, ['localhost']);
  await using fixture = startFixture({ tls: { hostname: '127.0.0.1', port: 0, certificate, http2: false } });
  const socket = connectTls({
    host: '127.0.0.1',
    port: fixture.edge.tlsPort as number,
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
  });
  await new Promise(resolve => socket.once('secureConnect', resolve));
  expect(socket.alpnProtocol).toBe('http/1.1');
  socket.destroy();
});

test('a client that stops reading makes the server wait', async () => {
  let sent = 0;
  const block = new Uint8Array(65_536);
  await using both = await startHttp2({
    api: () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sent += block.length;
            if (sent > 400_000_000) controller.close();
            else controller.enqueue(block);
          },
        }),
      ),
  });
  const stream = both.session.request({ ':authority': 'localhost', ':path': '/' });
  stream.on('error', () => {});
  await new Promise(resolve => stream.once('response', resolve));
  for (let before = -1; before !== sent;) {
    before = sent;
    await Bun.sleep(200);
  }
  expect(sent).toBeLessThan(100_000_000);
  stream.destroy();
}, 30_000);
