import { expect, test } from 'bun:test';
import { frame, frameType, headerBlock, preface } from '../attacks/support/http2-frames.ts';
import { get, host, startBoth } from './support/both-ends.ts';
import { RawSocket } from './support/raw-socket.ts';

test('a head that grows too large is refused', async () => {
  await using both = await startBoth({ limits: { requestHeadBytesMax: 4096 } });
  both.client.send(`GET / HTTP/1.1\r\n${host}`);
  for (let i = 0; i < 50; i++) both.client.send(`X-${i}: ${'y'.repeat(90)}\r\n`);
  await both.client.until(client => client.ended);
  expect(both.client.received).toStartWith('HTTP/1.1 431 ');
  const other = await RawSocket.connect(both.fixture.port);
  other.send(`GET /${'a'.repeat(5000)} HTTP/1.1\r\n${host}\r\n`);
  await other.until(client => client.ended);
  expect(other.received).toStartWith('HTTP/1.1 431 ');
  expect(both.server.connections).toEqual([]);
  other.close();
});

test('a response head that grows too large is not passed on', async () => {
  await using both = await startBoth({ limits: { responseHeadBytesMax: 4096 } });
  both.client.send(get);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send(`HTTP/1.1 200 OK\r\nX: ${'y'.repeat(5000)}`);
  await both.client.expect('"code":503}');
  expect(await upstream.over()).toBe('reset');
});

test('a service that speaks first is not HTTP, but not a closed port either', async () => {
  await using both = await startBoth();
  const chatty = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: socket => void socket.write('220 ready\r\n'), data() {} },
  });
  using _ = { [Symbol.dispose]: () => chatty.stop(true) };
  both.fixture.mapPort(80, chatty.port);
  both.client.send(get);
  expect(await both.client.expect('"code":503}')).toContain('"sandboxId":"one"');
});

test('a head that comes too slowly is refused', async () => {
  await using both = await startBoth({ limits: { headTimeoutMs: 100 } });
  both.client.send(get.slice(0, -2));
  await both.client.until(client => client.ended);
  expect(both.client.received).toStartWith('HTTP/1.1 408 ');
  expect(both.server.connections).toEqual([]);
});

test('one large head too many ends the one that arrives longest', async () => {
  await using both = await startBoth({ limits: { largeHeadBytes: 1000, largeHeadsMax: 2 } });
  const others = await Promise.all([1, 2, 3].map(() => RawSocket.connect(both.fixture.port)));
  const [large, larger, small] = others as [RawSocket, RawSocket, RawSocket];
  const begin = `GET / HTTP/1.1\r\n${host}X: `;
  small.send(begin);
  for (const client of [both.client, large]) client.send(begin + 'y'.repeat(2000));
  // Both are there before the third: a request on another connection is answered behind them.
  expect((await fetch(both.fixture.url)).status).toBe(200);
  larger.send(begin + 'y'.repeat(2000));
  await Promise.race([both.client, large].map(client => client.until(({ ended }) => ended)));
  const refused = [both.client, large].filter(({ received }) => received.startsWith('HTTP/1.1 503 '));
  expect(refused).toHaveLength(1);
  const staying = [both.client, large].filter(client => !refused.includes(client));
  for (const client of [...staying, larger, small]) {
    client.send('\r\n\r\n');
    const upstream = await both.server.accept();
    await upstream.expect('\r\n\r\n');
    upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    await client.expect('HTTP/1.1 200 OK');
    upstream.close();
  }
  for (const client of others) client.close();
});

test('one large head too many over HTTP/2 ends the connection on which it arrives longest', async () => {
  await using both = await startBoth({ limits: { largeHeadBytes: 1000, largeHeadsMax: 1 } });
  const clients = await Promise.all([1, 2].map(() => RawSocket.connect(both.fixture.port)));
  for (const client of clients) {
    const head = headerBlock([['x', 'y'.repeat(2000)]]);
    client.send(Buffer.concat([preface, frame(frameType.settings, 0, 0), frame(frameType.headers, 0, 1, head)]));
  }
  await Promise.race(clients.map(client => client.over()));
  expect(clients.filter(({ end }) => end === undefined)).toHaveLength(1);
  for (const client of clients) client.close();
});

test('a client that takes nothing of an answer of the API does not hold its place', async () => {
  const bytes = 64 << 20;
  await using both = await startBoth({
    limits: { unreadTimeoutMs: 300, apiRequestsMax: 1, apiRequestsPerAddressMax: 1, localApiRequestsReserved: 0 },
    api: request => new Response(new URL(request.url).pathname === '/large' ? Buffer.alloc(bytes) : 'small'),
  });
  both.client.pause();
  both.client.send('GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
  const ask = () => fetch(both.fixture.url).then(({ status }) => status);
  await until(async () => (await ask()) === 503);
  await until(async () => (await ask()) === 200);
});

async function until(look: () => Promise<boolean>): Promise<void> {
  while (!(await look())) await Bun.sleep(20);
}

test('byte after byte does not extend the time for a head', async () => {
  await using both = await startBoth({ limits: { headTimeoutMs: 300 } });
  both.client.send('GET / HTTP/1.1\r\nX: ');
  const drip = setInterval(() => both.client.send('y'), 10);
  try {
    await both.client.until(client => client.ended);
  } finally {
    clearInterval(drip);
  }
  expect(both.client.received).toStartWith('HTTP/1.1 408 ');
});

test('connections without a request are closed silently', async () => {
  await using both = await startBoth({ limits: { firstByteTimeoutMs: 50, keepAliveTimeoutMs: 50 } });
  await both.client.until(client => client.ended);
  expect(both.client.received).toBe('');
  const used = await RawSocket.connect(both.fixture.port);
  used.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await used.until(client => client.ended);
  expect(used.received).toStartWith('HTTP/1.1 200 ');
  used.close();
});

test('a stream on which nothing happens is cut', async () => {
  await using both = await startBoth({ limits: { streamIdleTimeoutMs: 100 } });
  both.client.send(get);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
  expect(await both.client.over()).toBe('reset');
  expect(await upstream.over()).toBe('reset');
});

test('a newcomer to a full edge takes the place of the connection that is idle longest', async () => {
  await using both = await startBoth({ limits: { clientConnectionsMax: 3, localConnectionsReserved: 0 } });
  const ask = async (client: RawSocket) => {
    client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await client.expect('200 OK');
    await client.expect('}}');
  };
  const first = both.client;
  const second = await RawSocket.connect(both.fixture.port);
  await ask(second);
  await ask(first);
  const silent = await RawSocket.connect(both.fixture.port);
  await ask(first);
  const newcomer = await RawSocket.connect(both.fixture.port);
  await ask(newcomer);
  await ended(second);
  const another = await RawSocket.connect(both.fixture.port);
  await ask(another);
  // A connection that has never sent anything, not even half a head, is as idle as one between two requests.
  await ended(silent);
  await ask(first);
  expect(both.fixture.edge.stats()).toMatchObject({ clientConnections: 3, evictedClients: 2, refusedClients: 0 });
});

test('where every connection has a request under way, a newcomer is refused', async () => {
  await using both = await startBoth({ limits: { clientConnectionsMax: 1, localConnectionsReserved: 0 } });
  both.client.send(get);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  const newcomer = await RawSocket.connect(both.fixture.port);
  await newcomer.over();
  upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await both.client.expect('ok');
  const later = await RawSocket.connect(both.fixture.port);
  later.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await later.expect('200 OK');
  await ended(both.client);
});

test('idle connections end sooner where many are open', async () => {
  await using both = await startBoth({
    limits: { clientConnectionsMax: 4, localConnectionsReserved: 0, crowdedKeepAliveMs: 100 },
  });
  await Promise.all([
    RawSocket.connect(both.fixture.port),
    RawSocket.connect(both.fixture.port),
    RawSocket.connect(both.fixture.port),
  ]);
  await ended(both.client);
});

test('requests into the sandboxes of one team leave room for those of another', async () => {
  await using both = await startBoth({ limits: { requestsPerTeamMax: 1, sandboxRequestsMax: 2 } });
  both.fixture.sandbox('two');
  both.fixture.sandbox('other', { teamId: 'other' });
  both.client.send(get);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  const answerTo = async (sandboxId: string) => {
    const response = await fetch(both.fixture.url, {
      headers: { Host: `80-${sandboxId}.localhost` },
      signal: AbortSignal.timeout(30_000),
    });
    return {
      status: response.status,
      body: (await response.json()) as unknown,
      retryAfter: response.headers.get('retry-after'),
    };
  };
  expect(await answerTo('two')).toMatchObject({ status: 429, body: { connectionLimit: 1 } });
  const foreign = answerTo('other');
  const another = await both.server.accept();
  await another.expect('\r\n\r\n');
  both.fixture.sandbox('third', { teamId: 'third' });
  expect(await answerTo('third')).toMatchObject({ status: 503, retryAfter: '1' });
  another.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
  expect(await foreign).toMatchObject({ status: 200 });
});

test('requests that hang in the API leave the edge and say so to the next one', async () => {
  let answer = () => {};
  const answered = new Promise<void>(resolve => (answer = resolve));
  await using both = await startBoth({
    limits: { apiRequestsMax: 1, localApiRequestsReserved: 0 },
    api: async () => (await answered, new Response('ok')),
  });
  const hanging = fetch(both.fixture.url);
  await settled(() => both.fixture.edge.stats().upstreamConnections, 1);
  const refused = await fetch(both.fixture.url);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  answer();
  expect((await hanging).status).toBe(200);
  expect((await fetch(both.fixture.url)).status).toBe(200);
});

test('a body for the API that stops coming gives its place back', async () => {
  await using both = await startBoth({
    limits: { apiBodyIdleTimeoutMs: 100 },
    api: async request => new Response(await request.text().catch(() => '')),
  });
  both.client.send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc');
  await both.client.over();
});

test('our own servers are asked with nothing that their runtime would answer by itself', async () => {
  await using both = await startBoth();
  const heads: Record<string, string> = {
    'BREW / HTTP/1.1\r\nHost: x\r\n\r\n': ' 501 ',
    'get / HTTP/1.1\r\nHost: x\r\n\r\n': ' 501 ',
    'TRACE / HTTP/1.1\r\nHost: 49983-one.localhost\r\n\r\n': ' 501 ',
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(15_400)}\r\n\r\n`]: ' 431 ',
    [`GET / HTTP/1.1\r\nHost: 49983-one.localhost\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`]: ' 431 ',
    [`GET / HTTP/1.1\r\nHost: ${'a'.repeat(513)}\r\n\r\n`]: ' 400 ',
    [`GET / HTTP/1.1\r\nHost: ${'a'.repeat(512)}\r\nX: ${'a'.repeat(14_700)}\r\n\r\n`]: ' 200 ',
  };
  for (const [head, status] of Object.entries(heads)) {
    both.client.send(head);
    await both.client.expect(status);
    await both.client.expect('}');
  }
  expect(both.server.connections).toEqual([]);
});

test('a refused upload is skipped up to its limit, then its connection closed', async () => {
  await using both = await startBoth({ limits: { discardBytesMax: 10_000 } });
  both.client.send('POST / HTTP/1.1\r\nHost: 80-no.localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
  await both.client.expect('"code":502}');
  both.client.send(`${'1000\r\n'}${'x'.repeat(4096)}\r\n`.repeat(5));
  await both.client.until(client => client.ended || client.end !== undefined);
  expect(both.client.received).toBe('');
});

test('requests sent ahead are not collected without bound', async () => {
  await using both = await startBoth({ limits: { pipelineBytesMax: 10_000 } });
  both.client.send(get);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  const ahead = 40_000_000;
  both.client.send(Buffer.alloc(ahead, `GET / HTTP/1.1\r\nHost: 80-no.localhost\r\n\r\n`));
  await settled(() => both.client.unsentBytes);
  // Most of it is still with the client: the edge took only kernel buffers and one read.
  expect(both.client.unsentBytes).toBeGreaterThan(ahead / 2);
  upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await both.client.expect('"code":502}');
});

test('a client that does not read its responses is not served further ones', async () => {
  let served = 0;
  await using both = await startBoth({
    api: () => {
      served++;
      return new Response('x'.repeat(100_000));
    },
  });
  both.client.pause();
  const requests = 2000;
  both.client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(requests));
  await settled(() => served, 1);
  expect(served).toBeGreaterThan(0);
  expect(served).toBeLessThan(requests / 4);
  both.client.resume();
  while (served < requests) {
    both.client.received = '';
    await Bun.sleep(20);
  }
});

/** Resolves when the other side sends nothing more. */
async function ended(client: RawSocket): Promise<void> {
  while (!client.ended && client.end === undefined) await Bun.sleep(5);
}

/** Resolves when a number, of `least` or more, has stopped changing. */
async function settled(read: () => number, least = 0): Promise<void> {
  for (let before = Number.NaN; read() !== before || before < least;) {
    before = read();
    await Bun.sleep(150);
  }
}
