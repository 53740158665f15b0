import { expect, test } from 'bun:test';
import { get, host, startBoth } from './support/both-ends.ts';
import { RawSocket } from './support/raw-socket.ts';
import { startFixture, to } from './support/fixture.ts';

const streaming = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n';

async function startStream(options: Parameters<typeof startBoth>[0] = {}, response = streaming) {
  const both = await startBoth(options);
  both.client.send(get);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send(response);
  await both.client.expect('first');
  return { ...both, upstream, [Symbol.asyncDispose]: () => both[Symbol.asyncDispose]() };
}

test('a client that resets its connection resets the upstream', async () => {
  await using stream = await startStream();
  stream.client.reset();
  expect(await stream.upstream.over()).toBe('reset');
});

test('a client that goes away before the response resets the upstream', async () => {
  await using both = await startBoth();
  both.client.send(get);
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  both.client.reset();
  expect(await upstream.over()).toBe('reset');
});

test('a client that goes away in the middle of its upload resets the upstream, however it goes', async () => {
  for (const leave of ['reset', 'close', 'halfClose'] as const) {
    await using both = await startBoth();
    both.client.send(`POST / HTTP/1.1\r\n${host}Content-Length: 100\r\n\r\nsome`);
    const upstream = await both.server.accept();
    await upstream.expect('some');
    both.client[leave]();
    expect([leave, await upstream.over()]).toEqual([leave, 'reset']);
  }
});

test('a client that closes while nothing flows: the upstream sees its FIN', async () => {
  await using stream = await startStream({ limits: { halfCloseGraceMs: 20 } });
  stream.client.close();
  await stream.upstream.until(upstream => upstream.ended);
});

test('a client that closes while the response flows is noticed by the next bytes', async () => {
  await using stream = await startStream({ limits: { halfCloseGraceMs: 60_000 } });
  stream.client.close();
  const timer = setInterval(() => stream.upstream.send('1\r\nx\r\n'), 5);
  try {
    expect(await stream.upstream.over()).toBe('reset');
  } finally {
    clearInterval(timer);
  }
});

test('a client that only half-closes gets its response', async () => {
  await using both = await startBoth();
  both.client.send(get);
  both.client.halfClose();
  const upstream = await both.server.accept();
  await upstream.expect('\r\n\r\n');
  upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  expect(await both.client.expect('ok')).toContain('200 OK');
  expect(await both.client.over()).toBe('closed');
  expect(upstream.end).toBeUndefined();
});

test('a half-closed client gets a slow response of a server that doesn’t mind', async () => {
  await using both = await startBoth({ limits: { halfCloseGraceMs: 20 } });
  both.client.send(get);
  both.client.halfClose();
  const upstream = await both.server.accept();
  await upstream.until(raw => raw.ended);
  upstream.send('HTTP/1.1 200 OK\r\n\r\nlate');
  upstream.close();
  expect(await both.client.expect('late')).toContain('200 OK');
  expect(await both.client.over()).toBe('closed');
});

test('a stream whose upstream goes away is reset, not ended', async () => {
  for (const [response, leave] of [
    [streaming, 'close'],
    [streaming, 'reset'],
    ['HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst', 'close'],
    ['HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst', 'reset'],
    ['HTTP/1.1 200 OK\r\n\r\nfirst', 'reset'],
  ] as const) {
    await using stream = await startStream({}, response);
    stream.upstream[leave]();
    expect([response, leave, await stream.client.over()]).toEqual([response, leave, 'reset']);
  }
});

test('an upstream that goes away without an answer is answered for, but not with 502', async () => {
  for (const leave of ['close', 'reset'] as const) {
    await using both = await startBoth();
    both.client.send(get);
    const upstream = await both.server.accept();
    await upstream.expect('\r\n\r\n');
    upstream[leave]();
    expect(await both.client.expect('"code":503}')).toStartWith('HTTP/1.1 503 ');
    both.client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await both.client.expect('200 OK');
  }
});

test('a kept connection that its server closed is replaced without the client noticing', async () => {
  for (const leave of ['close', 'reset'] as const) {
    await using both = await startBoth();
    both.client.send(get);
    const first = await both.server.accept();
    await first.expect('\r\n\r\n');
    first.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    await both.client.expect('ok');
    both.client.send(get);
    await first.expect('\r\n\r\n');
    first[leave]();
    const second = await both.server.accept();
    await second.expect('\r\n\r\n');
    second.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain');
    await both.client.expect('again');
  }
});

test('a request that may not be sent twice is not', async () => {
  await using both = await startBoth();
  const post = `POST / HTTP/1.1\r\n${host}Content-Length: 0\r\n\r\n`;
  both.client.send(post);
  const first = await both.server.accept();
  await first.expect('\r\n\r\n');
  first.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await both.client.expect('ok');
  both.client.send(post);
  await first.expect('\r\n\r\n');
  first.close();
  await both.client.expect('"code":503}');
  expect(both.server.connections.length).toBe(1);
});

test('an early response passes, and the rest of the upload is skipped', async () => {
  await using both = await startBoth();
  both.client.send(`POST / HTTP/1.1\r\n${host}Content-Length: 20\r\n\r\n0123456789`);
  const upstream = await both.server.accept();
  await upstream.expect('0123456789');
  upstream.send('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno');
  upstream.close();
  await both.client.expect('no');
  both.client.send(`0123456789GET / HTTP/1.1\r\nHost: x\r\n\r\n`);
  await both.client.expect('"api":"/"');
});

test('a killed sandbox’s connections are reset at once, and a request without an answer is told so', async () => {
  await using stream = await startStream();
  const { fixture, server } = stream;
  const waiting = await RawSocket.connect(fixture.port);
  waiting.send(get);
  const unanswered = await server.accept();
  await unanswered.expect('\r\n\r\n');
  const spliced = await RawSocket.connect(fixture.port);
  spliced.send(`GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: thing\r\n\r\n`);
  const upgraded = await server.accept();
  await upgraded.expect('\r\n\r\n');
  upgraded.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: thing\r\n\r\nhello');
  await spliced.expect('hello');
  fixture.remove('one');
  await waiting.expect('"The sandbox was not found"');
  for (const end of [stream.client, spliced, stream.upstream, unanswered, upgraded])
    expect(await end.over()).toBe('reset');
  expect((await fetch(fixture.url, { headers: to('one', 80) })).status).toBe(502);
});

test('a body that ends with its connection is not whole when its sandbox is gone', async () => {
  await using stream = await startStream({}, 'HTTP/1.1 200 OK\r\n\r\nfirst');
  stream.fixture.sandbox('one', { state: 'pausing' });
  stream.upstream.close();
  expect(await stream.client.over()).toBe('reset');
});

test('the end of one execution leaves its successor alone', async () => {
  await using stream = await startStream();
  stream.fixture.edge.closed({ sandboxId: 'one', executionId: 'an earlier one' });
  stream.upstream.send('6\r\nsecond\r\n');
  await stream.client.expect('second');
});

test('a client of several sandboxes keeps its connection when one that it isn’t using is killed', async () => {
  await using both = await startBoth();
  both.fixture.sandbox('two');
  both.client.send(get);
  const first = await both.server.accept();
  await first.expect('\r\n\r\n');
  first.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await both.client.expect('ok');
  both.client.send('GET / HTTP/1.1\r\nHost: 80-two.localhost\r\n\r\n');
  const second = await both.server.accept();
  await second.expect('\r\n\r\n');
  both.fixture.remove('one');
  expect(await first.over()).toBe('reset');
  second.send('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo');
  await both.client.expect('two');
});

test('a request that waits for its connection when the sandbox is killed is told so', async () => {
  const dialed = Promise.withResolvers<void>();
  await using fixture = startFixture({
    dial() {
      dialed.resolve();
      return new Promise(() => {});
    },
  });
  fixture.sandbox('one');
  const response = fetch(fixture.url, { headers: to('one', 80) });
  await dialed.promise;
  fixture.remove('one');
  expect((await response).status).toBe(502);
});

test('stopping lets requests in flight end and cuts the rest', async () => {
  await using stream = await startStream();
  const { fixture, server } = stream;
  const finishing = await RawSocket.connect(fixture.port);
  finishing.send(get);
  const upstream = await server.accept();
  await upstream.expect('\r\n\r\n');
  const idle = await RawSocket.connect(fixture.port);
  idle.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await idle.expect('200 OK');
  const stopped = fixture.edge.stop(300);
  await idle.until(client => client.ended);
  upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  expect(await finishing.expect('ok')).toContain('Connection: close');
  await stopped;
  expect(await stream.client.over()).toBe('reset');
  expect(await stream.upstream.over()).toBe('reset');
});

test('a connection that its client has reset before it is taken is nobody’s, and no trouble', async () => {
  await using fixture = startFixture();
  // The edge accepts nothing while this waits for the program.
  const program = `const socket = require('net').connect(${fixture.port}, '127.0.0.1', () => socket.resetAndDestroy())`;
  expect(Bun.spawnSync(['node', '-e', program]).exitCode).toBe(0);
  expect((await fetch(fixture.url)).status).toBe(200);
  expect(fixture.complaints).toEqual([]);
});

test('a client of the API that is gone is noticed at once, and one that only half-closes gets its answer', async () => {
  const begun = [Promise.withResolvers<AbortSignal>(), Promise.withResolvers<AbortSignal>()];
  const answer = Promise.withResolvers<void>();
  let asked = 0;
  await using fixture = startFixture({
    limits: { halfCloseGraceMs: 60_000 },
    async api(request) {
      begun[asked++]?.resolve(request.signal);
      await answer.promise;
      return new Response('made');
    },
  });
  const ask = 'POST /v2/sandboxes HTTP/1.1\r\nHost: api\r\nContent-Length: 2\r\n\r\n{}';
  const gone = await RawSocket.connect(fixture.port);
  gone.send(ask);
  const signal = await begun[0]?.promise;
  gone.close();
  if (signal?.aborted === false) await new Promise(resolve => signal.addEventListener('abort', resolve));
  const half = await RawSocket.connect(fixture.port);
  half.send(ask);
  await begun[1]?.promise;
  half.halfClose();
  await half.expect('HTTP/1.1 102 Processing\r\n\r\n');
  answer.resolve();
  expect(await half.expect('made')).toStartWith('HTTP/1.1 200 OK');
  expect(await half.over()).toBe('closed');
  expect((await begun[1]?.promise)?.aborted).toBe(false);
});
