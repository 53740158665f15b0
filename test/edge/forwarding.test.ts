import { expect, test } from 'bun:test';
import { get, host, startBoth } from './support/both-ends.ts';
import { RawSocket } from './support/raw-socket.ts';

test('the head passes unchanged but for what concerns the connection and the edge', async () => {
  await using both = await startBoth();
  both.client.send(
    [
      'PATCH /a//b/../c?d=%20&e HTTP/1.1',
      'Host: 80-one.localhost',
      'X-First:  spaced  ',
      'Connection: keep-alive, X-Hop',
      'X-Hop: secret',
      'Keep-Alive: timeout=5',
      'TE: trailers',
      'E2b-Sandbox-Id: other',
      'E2b-Traffic-Access-Token: token',
      'X-Access-Token: kept',
      'X-Forwarded-For: 9.9.9.9',
      'X-Forwarded-Host: evil.example',
      'Forwarded: for=9.9.9.9',
      'X-Real-IP: 9.9.9.9',
      'X-Atoll-Control-Token: stolen',
      'Cookie: a=b',
      'Cookie: c=d',
      'Content-Length: 2',
      '',
      'hi',
    ].join('\r\n'),
  );
  const upstream = await both.server.accept();
  expect((await upstream.expect('\r\n\r\nhi')).split('\r\n')).toEqual([
    'PATCH /a//b/../c?d=%20&e HTTP/1.1',
    'Host: 80-one.localhost',
    'X-First:  spaced  ',
    'X-Access-Token: kept',
    'Cookie: a=b',
    'Cookie: c=d',
    'Content-Length: 2',
    'X-Forwarded-For: 127.0.0.1',
    'X-Forwarded-Proto: http',
    'X-Forwarded-Host: 80-one.localhost',
    '',
    'hi',
  ]);
  const response =
    'HTTP/1.1 200 Fine by me\r\nServer: x\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 3\r\n\r\nabc';
  upstream.send(response);
  expect(await both.client.expect('abc')).toBe(response);
});

test('of metadata that is attached to an upload twice the first passes', async () => {
  await using both = await startBoth();
  both.client.send(
    [
      'POST /files HTTP/1.1',
      'Host: 49983-one.localhost',
      'X-Metadata-A: first',
      'x-metadata-b: other',
      'x-metadata-a: second',
      'X-Metadata-A: third',
      'Content-Length: 2',
      '',
      'hi',
    ].join('\r\n'),
  );
  const agent = await (await both.server.accept()).expect('\r\n\r\nhi');
  expect(agent.split('\r\n').filter(line => /^x-metadata/i.test(line))).toEqual([
    'X-Metadata-A: first',
    'x-metadata-b: other',
  ]);
});

test('what an answer says for its whole origin passes from the sandbox’s own host alone', async () => {
  await using both = await startBoth();
  const ofOrigin = [
    'Set-Cookie: __Host-atoll=0; Path=/; Secure',
    'set-cookie: a=b',
    'CLEAR-SITE-DATA: "*"',
    'Strict-Transport-Security: max-age=9',
    'Alt-Svc: h2=":666"',
    'NEL: {}',
    'Report-To: {}',
    'Reporting-Endpoints: a="https://x"',
    'Accept-CH: DPR',
    'Critical-CH: DPR',
    'Service-Worker-Allowed: /',
  ];
  const response = ['HTTP/1.1 200 OK', 'X-Its: own', ...ofOrigin, 'Content-Length: 2', '', 'ok'].join('\r\n');
  both.client.send(`GET / HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: one\r\nE2b-Sandbox-Port: 80\r\n\r\n`);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send(response);
  expect(await both.client.expect('\r\n\r\nok')).toBe('HTTP/1.1 200 OK\r\nX-Its: own\r\nContent-Length: 2\r\n\r\nok');
  both.client.send(get);
  await upstream.expect('80-one.localhost');
  upstream.send(response);
  expect(await both.client.expect('\r\n\r\nok')).toEndWith(response);
});

test('a connection can’t nominate away what decides about framing and destination', async () => {
  await using both = await startBoth();
  both.client.send(`POST / HTTP/1.1\r\n${host}Connection: Host, Content-Length, close\r\nContent-Length: 2\r\n\r\nhi`);
  const head = await (await both.server.accept()).expect('\r\n\r\nhi');
  expect(head).toContain('Host: 80-one.localhost\r\n');
  expect(head).toContain('Content-Length: 2\r\n');
});

test('forwarded headers of a trusted load balancer are extended', async () => {
  await using both = await startBoth({ trustForwardedHeaders: true });
  both.client.send(
    `GET / HTTP/1.1\r\n${host}X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n\r\n`,
  );
  const head = await (await both.server.accept()).expect('\r\n\r\n');
  expect(head).toContain('X-Forwarded-For: 9.9.9.9, 127.0.0.1\r\n');
  expect(head).toContain('X-Forwarded-Proto: https\r\n');
  expect(head).toContain('X-Forwarded-Host: a.example\r\n');
  expect(head.match(/x-forwarded/gi)?.length).toBe(3);
});

test('the Host is masked, but never for the agent', async () => {
  await using both = await startBoth();
  both.fixture.sandbox('one', { ingress: { maskRequestHost: 'localhost:${PORT}' } });
  both.client.send(get);
  const upstream = await both.server.accept();
  const head = await upstream.expect('\r\n\r\n');
  expect(head).toContain('\r\nHost: localhost:80\r\n');
  expect(head).toContain('\r\nX-Forwarded-Host: 80-one.localhost\r\n');
  expect(head.match(/\r\nhost:/gi)?.length).toBe(1);
  upstream.send('HTTP/1.1 204 No Content\r\n\r\n');
  await both.client.expect('\r\n\r\n');
  both.client.send('GET /health HTTP/1.1\r\nHost: 49983-one.localhost\r\n\r\n');
  expect(await (await both.server.accept()).expect('\r\n\r\n')).toContain('Host: 49983-one.localhost\r\n');
});

test('an absolute target names the host', async () => {
  await using both = await startBoth();
  both.client.send('GET http://80-one.localhost:3000?q HTTP/1.1\r\nHost: evil.example\r\n\r\n');
  const head = await (await both.server.accept()).expect('\r\n\r\n');
  expect(head).toStartWith('GET /?q HTTP/1.1\r\n');
  expect(head).toContain('Host: 80-one.localhost:3000\r\n');
  expect(head).toContain('X-Forwarded-Host: 80-one.localhost:3000\r\n');
  expect(head).not.toContain('evil');
});

test('bodies flow in both directions at the same time, chunked as they are', async () => {
  await using both = await startBoth();
  both.client.send(`POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n`);
  const upstream = await both.server.accept();
  await upstream.expect('3;x=y\r\nabc\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
  expect(await both.client.expect('\r\n\r\n')).toBe('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
  for (let i = 0; i < 20; i++) {
    const chunk = `5\r\nno ${String(i).padStart(2)}\r\n`;
    both.client.send(chunk);
    await upstream.expect(chunk);
    upstream.send(chunk);
    await both.client.expect(chunk);
  }
  both.client.send('0\r\nTrailer-One: a\r\n\r\n');
  await upstream.expect('0\r\nTrailer-One: a\r\n\r\n');
  upstream.send('0\r\n\r\n');
  await both.client.expect('0\r\n\r\n');
  // Servers treat trailers differently: the connection serves nobody else.
  await upstream.until(server => server.ended);
  both.client.send(get);
  await (await both.server.accept()).expect('GET / HTTP/1.1\r\n');
});

test('a connection serves no other request after a response with trailers', async () => {
  await using both = await startBoth();
  both.client.send(get);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n');
  await both.client.expect('X: y\r\n\r\n');
  both.client.send(get);
  await (await both.server.accept()).expect('GET / HTTP/1.1\r\n');
});

test('every piece of a response arrives at once', async () => {
  await using both = await startBoth();
  both.client.send(get);
  const upstream = await both.server.accept();
  for (const piece of [
    'HTTP/1.1 20',
    '0 OK\r\nContent-Type: text/event-stream\r\nTransfer-',
    'Encoding: chunked\r\n\r\n',
  ])
    upstream.send(piece);
  await both.client.expect('\r\n\r\n');
  for (const piece of ['7\r\n', 'data: 1', '\r\n', 'a\r\ndata: 2\n\n\n\r\n']) {
    upstream.send(piece);
    await both.client.expect(piece);
  }
});

test('responses without a body are known as such', async () => {
  await using both = await startBoth();
  const upstream: RawSocket[] = [];
  for (const [method, response] of [
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n'],
    ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['HEAD', 'HTTP/1.1 200 OK\r\n\r\n'],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n'],
    ['GET', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ] as const) {
    both.client.send(`${method} / HTTP/1.1\r\n${host}\r\n`);
    upstream[0] ??= await both.server.accept();
    await upstream[0].expect('\r\n\r\n');
    upstream[0].send(response);
    expect(await both.client.expect('\r\n\r\n')).toBe(response);
  }
  expect(both.server.connections.length).toBe(1);
});

test('a response that ends with its connection does so for the client too', async () => {
  await using both = await startBoth();
  both.client.send(get);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.0 200 OK\r\nServer: old\r\n\r\nsome ');
  expect(await both.client.expect('some ')).toBe('HTTP/1.1 200 OK\r\nServer: old\r\nConnection: close\r\n\r\nsome ');
  upstream.send('more');
  await both.client.expect('more');
  upstream.close();
  await both.client.until(client => client.ended);
});

test('what the server says about its connection stays with the edge', async () => {
  await using both = await startBoth();
  both.client.send(get);
  const first = await both.server.accept();
  await first.expect('\r\n\r\n');
  first.send('HTTP/1.1 200 OK\r\nConnection: close\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok');
  expect(await both.client.expect('ok')).toBe('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await first.until(upstream => upstream.ended || upstream.end !== undefined);
  both.client.send(get);
  const second = await both.server.accept();
  await second.expect('\r\n\r\n');
  second.send('HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok');
  expect(await both.client.expect('ok')).toBe('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
});

test('a client that wants its connection closed gets that', async () => {
  await using both = await startBoth();
  both.client.send(`GET / HTTP/1.1\r\n${host}Connection: Close\r\n\r\n`);
  const upstream = await both.server.accept();
  expect(await upstream.expect('\r\n\r\n')).not.toContain('lose');
  upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  expect(await both.client.expect('ok')).toContain('Connection: close\r\n');
  await both.client.until(client => client.ended);
});

test('an HTTP/1.0 client is served in its own version', async () => {
  await using both = await startBoth();
  both.client.send(`GET / HTTP/1.0\r\n${host}\r\n`);
  const upstream = await both.server.accept();
  const head = await upstream.expect('\r\n\r\n');
  expect(head).toStartWith('GET / HTTP/1.0\r\n');
  expect(head).toContain('Connection: close\r\n');
  upstream.send('HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nall');
  upstream.close();
  await both.client.until(client => client.ended);
  expect(both.client.received).toBe('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall');
});

test('interim responses pass, a 100 only to who asked for it', async () => {
  await using both = await startBoth();
  both.client.send(`POST / HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`);
  const upstream = await both.server.accept();
  expect(await upstream.expect('\r\n\r\n')).toContain('Expect: 100-continue\r\n');
  upstream.send('HTTP/1.1 100 Continue\r\n\r\n');
  await both.client.expect('HTTP/1.1 100 Continue\r\n\r\n');
  both.client.send('hi');
  await upstream.expect('hi');
  const final = 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
  upstream.send(final);
  expect(await both.client.expect(final)).toBe(final);
  both.client.send(get);
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  expect(await both.client.expect('Length: 0\r\n\r\n')).not.toContain('100');
});

test('interim responses of what was named by headers say nothing for the whole origin', async () => {
  await using both = await startBoth();
  both.client.send('GET / HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: one\r\nE2b-Sandbox-Port: 80\r\n\r\n');
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  const [first, last] = ['HTTP/1.1 103 Early Hints\r\nLink: x\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'];
  upstream.send(`${first}Set-Cookie: a=b\r\nAccept-CH: y\r\n\r\n${last}`);
  expect(await both.client.expect(last)).toBe(`${first}\r\n${last}`);
});

test('a client that waits for a 100 learns of a refusal, and nothing it sends is taken for a request', async () => {
  await using both = await startBoth();
  both.client.send(
    'POST / HTTP/1.1\r\nHost: 80-unknown.localhost\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\n',
  );
  expect(await both.client.expect('"code":502}')).toContain('Connection: close\r\n');
  both.client.send(get);
  await both.client.until(client => client.ended);
  expect(both.client.received).toBe('');
  expect(both.server.connections.length).toBe(0);
});

test('a refused request’s body is skipped and its connection kept', async () => {
  await using both = await startBoth();
  for (const body of ['Content-Length: 5\r\n\r\nhello', 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n']) {
    both.client.send(`POST / HTTP/1.1\r\nHost: 80-unknown.localhost\r\n${body}`);
    await both.client.expect('"code":502}');
  }
  both.client.send('POST / HTTP/1.1\r\nHost: 80-unknown.localhost\r\nContent-Length: 5\r\n\r\nhe');
  await both.client.expect('"code":502}');
  both.client.send(`llo${get}`);
  await (await both.server.accept()).expect('GET / HTTP/1.1\r\n');
});

test('one connection carries requests for several places, answered in their order', async () => {
  await using both = await startBoth();
  both.fixture.sandbox('two');
  const at = (name: string) => `GET /${name} HTTP/1.1\r\nHost: ${name}\r\n\r\n`;
  both.client.send(`${at('80-one.x')}${at('localhost')}${at('80-two.x')}${at('80-no.x')}`);
  const first = await both.server.accept();
  await first.expect('GET /80-one.x ');
  // The second request waits for the first one's response.
  expect(both.server.connections.length).toBe(1);
  first.send('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none');
  const second = await both.server.accept();
  await second.expect('GET /80-two.x ');
  second.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n');
  const all = await both.client.expect('"code":502}');
  expect(all.match(/\r\n\r\none|"api":"\/localhost"|3\r\ntwo\r\n|"sandboxId":"no"/g)).toEqual([
    '\r\n\r\none',
    '"api":"/localhost"',
    '3\r\ntwo\r\n',
    '"sandboxId":"no"',
  ]);
});

test('an upstream connection is kept for the next request of any client', async () => {
  await using both = await startBoth();
  const other = await RawSocket.connect(both.fixture.port);
  const ask = async (client: RawSocket) => {
    client.send(get);
    const upstream = both.server.connections[0] ?? (await both.server.accept());
    await upstream.expect('\r\n\r\n');
    upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    await client.expect('ok');
  };
  await ask(both.client);
  await ask(other);
  await ask(both.client);
  expect(both.server.connections.length).toBe(1);
  other.close();
});

test('connections are not shared between sandboxes, nor between executions of one', async () => {
  await using both = await startBoth();
  both.fixture.sandbox('two');
  const hosts = ['80-one.x', '80-two.x', '80-one.x'];
  for (const [index, name] of hosts.entries()) {
    if (index === 2) both.fixture.sandbox('one', { executionId: 'another' });
    both.client.send(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`);
    const upstream = await both.server.accept();
    await upstream.expect('\r\n\r\n');
    upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    await both.client.expect('ok');
  }
  expect(both.server.connections.length).toBe(3);
  expect(await (both.server.connections[0] as RawSocket).over()).toBe('reset');
});
