import { expect, test } from 'bun:test';
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
  const chatty = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { open: socket => void socket.write('220 ready\r\n'), data() {} } });
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

test('more clients than the limit are turned away', async () => {
  await using both = await startBoth({ limits: { clientConnectionsMax: 1 } });
  both.client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await both.client.expect('200 OK');
  const other = await RawSocket.connect(both.fixture.port);
  await other.over();
  both.client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await both.client.expect('200 OK');
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
  // Most of it is still with the client: kernel buffers and one read are all that the edge took.
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
  await settled(() => served);
  expect(served).toBeGreaterThan(0);
  expect(served).toBeLessThan(requests / 4);
  both.client.resume();
  while (served < requests) {
    both.client.received = '';
    await Bun.sleep(20);
  }
});

/** Resolves when a number has stopped changing. */
async function settled(read: () => number): Promise<void> {
  for (let before = Number.NaN; read() !== before; ) {
    before = read();
    await Bun.sleep(150);
  }
}
