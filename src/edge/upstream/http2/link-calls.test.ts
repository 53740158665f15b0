import { afterEach, expect, test } from 'bun:test';
import { constants, createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { silentLog } from '../../../base/telemetry/log.ts';
import { Http2Turns } from '../../http2-turns.ts';
import { limitsWithin } from '../../limits.ts';
import { Upstream, upstreamHandlers } from '../upstream.ts';
import { Http2Link } from './link.ts';

// Calls of a service, and how they end. What a service says before a call is in `link.test.ts`.

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step();
});

const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise(resolve => setImmediate(resolve));
};

type Answers = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** A service that gives these answers to each call, and a link to it whose user is the test. */
async function linked(answers: Answers) {
  const server = createServer();
  const calls: ServerHttp2Stream[] = [];
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => void sockets.push(socket));
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on('error', () => {});
    calls.push(stream);
    answers(stream, headers);
  });
  server.on('sessionError', () => {});
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()));
  undo.push(() => void server.close());
  const heard: string[] = [];
  const home = { add() {}, give() {}, forget: () => void heard.push('(forgotten)') };
  const raw = new Upstream({ add() {}, give() {}, forget: () => void heard.push('(raw gone)') });
  raw.early = [];
  await Bun.connect({
    ...{ hostname: '127.0.0.1', port: (server.address() as { port: number }).port, data: raw, allowHalfOpen: true },
    socket: upstreamHandlers(silentLog),
  });
  const { upstream } = new Http2Link(raw, home, { limits: limitsWithin(1000), turns: new Http2Turns() }, false);
  undo.push(() => upstream.terminate());
  const it = { text: '', bytes: 0, drained: 0, closed: 'no' };
  const use = () => {
    upstream.user = {
      upstreamData(bytes) {
        it.bytes += bytes.length;
        if (bytes.length < 1000) it.text += bytes.toString('latin1');
      },
      upstreamDrained: () => void it.drained++,
      upstreamEnded() {},
      upstreamClosed: error => void (it.closed = error?.message ?? 'in order'),
      cut() {},
    };
  };
  use();
  const asks = (text: string | Buffer) => {
    const bytes = Buffer.from(text);
    return upstream.sendBuffer.write(bytes, 0, bytes.length, false);
  };
  const took = () => {
    const { text } = it;
    it.text = '';
    return text;
  };
  return { upstream, raw, heard, it, asks, took, calls, sockets };
}
const head = (method: string, ...lines: string[]) =>
  [`${method} /x HTTP/1.1`, 'Host: a', ...lines, '', ''].join('\r\n');
const respond =
  (status = 200, body = 'ok') =>
  (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': status });
    stream.end(body);
  };
/** Reads a request's body, and its trailers, to the end. */
const readAll = (stream: ServerHttp2Stream) => {
  const got = { text: '', bytes: 0, trailers: {} as IncomingHttpHeaders, isWhole: false, code: undefined as unknown };
  stream.on('data', (bytes: Buffer) => {
    got.bytes += bytes.length;
    if (bytes.length < 1000) got.text += bytes.toString();
  });
  stream.on('trailers', trailers => void (got.trailers = trailers));
  stream.on('end', () => void (got.isWhole = true));
  stream.on('close', () => void (got.code = stream.rstCode));
  return got;
};
const whole = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

test('one call comes after the other, each with its answer', async () => {
  const asked: unknown[] = [];
  const { asks, it, took, upstream, heard } = await linked((stream, headers) => {
    asked.push([headers[':method'], headers[':path'], headers[':authority'], headers[':scheme'], headers['te']]);
    respond()(stream);
  });
  for (const method of ['GET', 'PUT']) {
    asks(head(method, 'Content-Length: 0'));
    await until(() => it.text.endsWith('0\r\n\r\n'));
    const text = took();
    expect(text).toStartWith('HTTP/1.1 200 -\r\n');
    expect(text).toContain('Transfer-Encoding: chunked\r\n');
    expect(text).toEndWith(`\r\n\r\n${whole('ok')}`);
  }
  expect(asked).toEqual([
    ['GET', '/x', 'a', 'http', 'trailers'],
    ['PUT', '/x', 'a', 'http', 'trailers'],
  ]);
  expect([it.closed, upstream.ended, heard]).toEqual(['no', false, []]);
});

test('bodies of either framing go whole, with what is behind them', async () => {
  const got: ReturnType<typeof readAll>[] = [];
  const { asks, it, took } = await linked(stream => {
    got.push(readAll(stream));
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.on('end', () => void stream.end());
  });
  asks(head('POST', 'Content-Length: 9') + 'some');
  asks('-more');
  await until(() => it.text.endsWith('\r\n\r\n') && it.text.includes('grpc-status'));
  expect(took()).toEndWith('\r\n\r\n0\r\ngrpc-status: 0\r\n\r\n');
  asks(head('POST', 'Transfer-Encoding: chunked'));
  asks('3\r\nabc\r\n');
  asks('2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n');
  await until(() => it.text.includes('grpc-status'));
  expect(got.map(({ text, isWhole }) => [text, isWhole])).toEqual([
    ['some-more', true],
    ['abcde', true],
  ]);
  expect(got[1]?.trailers['x-sum']).toBe('5');
});

test('answers without a body are over with their head', async () => {
  const { asks, it, took } = await linked((stream, headers) => {
    stream.respond(
      { ':status': headers[':method'] === 'DELETE' ? 204 : 200, 'content-length': 7 },
      { endStream: true },
    );
  });
  asks(head('HEAD'));
  await until(() => it.text.endsWith('\r\n\r\n'));
  expect(took()).toContain('content-length: 7');
  asks(head('DELETE'));
  await until(() => it.text.endsWith('\r\n\r\n'));
  expect(took()).toStartWith('HTTP/1.1 204');
  asks(head('GET'));
  await until(() => it.text.endsWith('\r\n\r\n'));
  expect(took()).toContain('Content-Length: 0\r\n');
});

test('a service that resets a call ends the connection, before its answer or in it', async () => {
  const reset = await linked(stream => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  reset.asks(head('GET'));
  await until(() => reset.it.closed !== 'no');
  expect([reset.it.closed, reset.upstream.closed]).toEqual(['the service reset the stream', true]);
  const cut = await linked(stream => {
    stream.respond({ ':status': 200 });
    stream.write('half');
    setTimeout(() => stream.destroy(new Error('broken')), 5);
  });
  cut.asks(head('GET'));
  await until(() => cut.it.closed !== 'no');
  expect([cut.it.text.endsWith('4\r\nhalf\r\n'), cut.it.closed]).toEqual([true, 'the service reset the stream']);
});

test('a service that goes in the middle of a call breaks it off, and in order where there is none', async () => {
  for (const isBusy of [true, false]) {
    const at = await linked(stream => (isBusy ? stream.respond({ ':status': 200 }) : respond()(stream)));
    at.asks(head('GET'));
    await until(() => at.it.text.endsWith(isBusy ? '\r\n\r\n' : whole('ok')));
    at.sockets[0]?.destroy();
    await until(() => at.it.closed !== 'no');
    expect(at.it.closed === 'in order').toBe(!isBusy);
    await until(() => at.heard.length === 2);
    expect(at.heard.toSorted()).toEqual(['(forgotten)', '(raw gone)']);
  }
});

test('a service that says farewell gets no further call, and the one on its way goes on', async () => {
  const { asks, it, upstream, calls } = await linked(stream => stream.respond({ ':status': 200 }));
  asks(head('GET'));
  await until(() => it.text !== '');
  calls[0]?.session?.goaway();
  await until(() => upstream.ended);
  expect(it.closed).toBe('no');
  calls[0]?.end('late');
  await until(() => it.text.endsWith(whole('late')));
});

test('a client that has gone is told of to the service', async () => {
  const got: ReturnType<typeof readAll>[] = [];
  const { asks, upstream } = await linked(stream => void got.push(readAll(stream)));
  asks(head('GET'));
  await until(() => got.length === 1);
  upstream.socket.shutdown();
  await until(() => got[0]?.code !== undefined);
  expect([got[0]?.isWhole, got[0]?.code]).not.toEqual([true, constants.NGHTTP2_NO_ERROR]);
});

test('a connection is closed in order, broken off, or cut with its sandbox', async () => {
  for (const [how, message] of [
    ['close', 'in order'],
    ['terminate', 'reset'],
  ] as const) {
    const at = await linked(() => {});
    at.upstream[how]();
    at.upstream[how]();
    expect([at.it.closed, at.upstream.closed]).toEqual([message, true]);
    await until(() => at.heard.includes('(raw gone)'));
    expect(at.heard.toSorted()).toEqual(['(forgotten)', '(raw gone)']);
  }
  const at = await linked(() => {});
  at.asks(head('GET'));
  at.raw.user?.cut();
  expect(at.it.closed).toBe('the sandbox ended');
  await until(() => at.heard.includes('(raw gone)'));
});

test('a service that does not read is not sent more than it takes, and gets all when it does', async () => {
  const size = 8 << 20;
  let got: ReturnType<typeof readAll> | undefined;
  const { asks, it, upstream, calls } = await linked(stream => stream.pause());
  asks(head('POST', `Content-Length: ${size}`));
  await until(() => calls.length === 1);
  expect(asks(Buffer.alloc(size, 'x'))).toBe(false);
  for (let before = -1; before !== upstream.socket.bytesWritten; await Bun.sleep(20))
    before = upstream.socket.bytesWritten;
  expect(upstream.socket.bytesWritten).toBeLessThan(size / 2);
  expect(it.drained).toBe(0);
  got = readAll(calls[0]!);
  calls[0]?.resume();
  await until(() => got?.isWhole === true && it.drained > 0);
  expect(got.bytes).toBe(size);
});

test('a client that does not read is not sent more than it takes, and gets all when it does', async () => {
  const size = 4 << 20;
  const { asks, it, upstream } = await linked(stream => {
    stream.respond({ ':status': 200 });
    stream.end(Buffer.alloc(size, 'x'));
  });
  asks(head('GET'));
  await until(() => it.bytes > 0);
  upstream.pause();
  for (let before = -1; before !== it.bytes; await Bun.sleep(20)) before = it.bytes;
  expect(it.bytes).toBeLessThan(size / 2);
  upstream.resume();
  await until(() => it.text.endsWith('0\r\n\r\n'));
  expect(it.bytes).toBeGreaterThan(size);
});

test('what is left of a request that was answered goes nowhere, and the next one is asked behind it', async () => {
  const { asks, it, took, calls } = await linked((stream, headers) => {
    stream.resume();
    respond(headers[':method'] === 'POST' ? 413 : 200)(stream);
  });
  asks(head('POST', 'Content-Length: 10') + 'half.');
  await until(() => it.text.endsWith(whole('ok')));
  expect(took()).toStartWith('HTTP/1.1 413');
  expect(asks('other')).toBe(true);
  if (it.closed !== 'no') return;
  asks(head('GET'));
  await until(() => it.text.endsWith(whole('ok')) || it.closed !== 'no');
  expect([it.closed, calls.length]).toEqual(['no', 2]);
});

test('a head that is not whole is a fault of ours, and heard of in a later turn', async () => {
  const { asks, it } = await linked(() => {});
  asks('GET / HTTP/1.1\r\nHost');
  expect(it.closed).toBe('no');
  await until(() => it.closed !== 'no');
  expect(it.closed).toContain('invariant broken');
  expect(asks(head('GET'))).toBe(true);
});
