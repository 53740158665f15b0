import { expect, test } from 'bun:test';
import { flag, frame, frameType, framesOf, headFrame, preface, setting } from '../attacks/support/http2-frames.ts';
import { startFixture } from './support/fixture.ts';
import { RawSocket, startRawServer } from './support/raw-socket.ts';

// Responses that the edge has taken whole from their service, and that wait on HTTP/2 streams for their client.

const answerBytes = 60_000;
const initialWindow = 4;
const window = (stream: number, bytes: number) => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(frameType.window, 0, stream, payload);
};

/** A client that takes no response by itself, beside a service that answers at once. */
async function startUnread(limits: Record<string, number>) {
  const fixture = startFixture({ limits: { unreadTimeoutMs: 300, ...limits } });
  let served = 0;
  const service = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => (served++, new Response('x'.repeat(answerBytes))),
  });
  fixture.sandbox('one');
  fixture.mapPort(80, service.port ?? 0);
  const client = await RawSocket.connect(fixture.port);
  client.send(Buffer.concat([preface, frame(frameType.settings, 0, 0, setting(initialWindow, 0)), window(0, 1 << 30)]));
  const frames = () => framesOf(Buffer.from(client.received, 'latin1'));
  return {
    fixture,
    client,
    ask(stream: number, authority = '80-one.localhost') {
      const head = Object.entries({ ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': authority });
      client.send(headFrame(stream, head, flag.endHeaders | flag.endStream));
    },
    /** Resolves once the service has answered this many requests, and the edge has read the answers. */
    async answered(count: number) {
      while (served < count) await Bun.sleep(5);
      while (frames().filter(({ type }) => type === frameType.headers).length < count) await Bun.sleep(5);
    },
    /** What has arrived of a response, and whether that is all. */
    of(stream: number) {
      const own = frames().filter(({ stream: id, type }) => id === stream && type === frameType.data);
      const bytes = own.reduce((sum, { payload }) => sum + payload.length, 0);
      return { bytes, isWhole: own.some(({ flags }) => (flags & flag.endStream) !== 0) };
    },
    /** How many responses have arrived whole. */
    whole: () => frames().filter(({ type, flags }) => type === frameType.data && (flags & flag.endStream) !== 0).length,
    wasReset: (stream: number) => frames().some(({ type, stream: id }) => type === frameType.reset && id === stream),
    async [Symbol.asyncDispose]() {
      client.close();
      await fixture[Symbol.asyncDispose]();
      await service.stop(true);
    },
  };
}

test('a response that nobody takes counts as a request, and is reset in time', async () => {
  await using unread = await startUnread({ keepAliveTimeoutMs: 300 });
  const streams = [1, 3, 5];
  for (const stream of streams) unread.ask(stream);
  await unread.answered(streams.length);
  expect(unread.fixture.edge.stats().inSandboxes).toBe(streams.length);
  await unread.client.until(() => streams.every(stream => unread.wasReset(stream)));
  expect(unread.fixture.edge.stats().inSandboxes).toBe(0);
  // Nothing keeps the connection any more.
  while (unread.fixture.edge.stats().clientConnections > 0) await Bun.sleep(5);
});

test('a client that takes its responses slowly, one after the other, gets all of them', async () => {
  await using unread = await startUnread({});
  const streams = [1, 3];
  for (const stream of streams) unread.ask(stream);
  await unread.answered(streams.length);
  for (const stream of streams) {
    // It takes longer than any response may wait while nothing is taken.
    for (let sent = 0; sent < answerBytes; sent += 3000) {
      unread.client.send(window(stream, 3000));
      await Bun.sleep(50);
    }
    await unread.client.until(() => unread.of(stream).isWhole || unread.wasReset(stream));
    expect(unread.of(stream)).toEqual({ bytes: answerBytes, isWhole: true });
  }
  // The connection goes on.
  unread.ask(5);
  unread.client.send(window(5, answerBytes));
  await unread.client.until(() => unread.of(5).isWhole);
  while (unread.fixture.edge.stats().inSandboxes > 0) await Bun.sleep(5);
});

test('the end of a WebSocket that nobody takes counts as well', async () => {
  await using unread = await startUnread({});
  using server = startRawServer();
  unread.fixture.mapPort(81, server.port);
  const head = Object.entries({
    ...{ ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'http', ':path': '/' },
    ...{ ':authority': '81-one.localhost', 'sec-websocket-version': '13' },
  });
  unread.client.send(headFrame(1, head));
  const upstream = await server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n${'x'.repeat(answerBytes)}`,
  );
  unread.client.send(frame(frameType.data, flag.endStream, 1));
  await upstream.until(({ ended }) => ended);
  upstream.close();
  while (unread.fixture.edge.stats().upstreamConnections > 0) await Bun.sleep(5);
  expect(unread.fixture.edge.stats().inSandboxes).toBe(1);
  await unread.client.until(() => unread.wasReset(1));
  expect(unread.fixture.edge.stats().inSandboxes).toBe(0);
});

/** Resolves when a number has stopped changing. */
async function settled(read: () => number): Promise<void> {
  for (let before = Number.NaN; read() !== before;) {
    before = read();
    await Bun.sleep(100);
  }
}

test('whole responses that wait for a connection that nobody reads count as well', async () => {
  for (const comesBack of [true, false]) {
    await using unread = await startUnread({ unreadTimeoutMs: comesBack ? 10_000 : 500 });
    const streams = Array.from({ length: 250 }, (_, at) => 2 * at + 1);
    for (const stream of streams) unread.ask(stream);
    await unread.answered(streams.length);
    unread.client.pause();
    for (const stream of streams) unread.client.send(window(stream, answerBytes));
    const { stats } = unread.fixture.edge;
    await settled(() => stats().inSandboxes);
    if (comesBack) {
      expect(stats().inSandboxes).toBeGreaterThan(20);
      unread.client.resume();
      while (unread.whole() < streams.length) await Bun.sleep(100);
    } else {
      while (stats().clientConnections > 0) await Bun.sleep(5);
    }
    while (stats().inSandboxes > 0) await Bun.sleep(5);
  }
}, 60_000);

test('a stream that runs outlasts the whole responses beside it that a sleeping client does not read', async () => {
  await using unread = await startUnread({ unreadTimeoutMs: 1500 });
  using server = startRawServer();
  unread.fixture.mapPort(81, server.port);
  unread.ask(1, '81-one.localhost');
  unread.client.send(window(1, 1 << 20));
  const upstream = await server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
  const streams = Array.from({ length: 249 }, (_, at) => 2 * at + 3);
  for (const stream of streams) unread.ask(stream);
  await unread.answered(streams.length);
  unread.client.pause();
  for (const stream of streams) unread.client.send(window(stream, answerBytes));
  const { stats } = unread.fixture.edge;
  await settled(() => stats().inSandboxes);
  expect(stats().inSandboxes).toBeGreaterThan(1);
  // A window: what it has not read would have ended the connection in it.
  await Bun.sleep(4000);
  expect(stats().clientConnections).toBe(1);
  unread.client.resume();
  upstream.send('4\r\nmore\r\n0\r\n\r\n');
  await unread.client.until(() => unread.of(1).isWhole || unread.wasReset(1));
  expect(unread.of(1)).toEqual({ bytes: 4, isWhole: true });
}, 60_000);

test('a response without end waits for a connection that nobody reads', async () => {
  await using unread = await startUnread({});
  const block = new Uint8Array(65_536);
  let sent = 0;
  const most = 300_000_000;
  await using service = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sent += block.length;
            if (sent > most) controller.close();
            else controller.enqueue(block);
          },
        }),
      ),
  });
  unread.fixture.mapPort(81, service.port ?? 0);
  unread.client.pause();
  unread.ask(1, '81-one.localhost');
  unread.client.send(window(1, 1 << 30));
  while (sent === 0) await Bun.sleep(5);
  await settled(() => sent);
  const before = sent;
  expect(before).toBeLessThan(most / 4);
  unread.client.resume();
  while (sent < 2 * before) await Bun.sleep(5);
}, 60_000);
