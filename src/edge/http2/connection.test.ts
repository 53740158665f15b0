import { afterEach, expect, test } from 'bun:test';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { silentLog } from '../../base/telemetry/log.ts';
import { RequestHead } from '../../http1/request-head.ts';
import { ResponseHead } from '../../http1/response-head.ts';
import { plainAnswer } from '../answer/answer.ts';
import { ClientTable } from '../clients/client-table.ts';
import type { Client } from '../connection/client.ts';
import type { ConnectionContext } from '../context.ts';
import { LargeHeads } from '../clients/large-heads.ts';
import { WaitingBytes } from '../waiting-bytes.ts';
import { Http2Turns } from '../http2-turns.ts';
import { type EdgeLimits, limitsWithin } from '../limits.ts';
import { listenPlain } from '../listeners.ts';
import { Http2Connection } from './connection.ts';

// How a connection treats its streams and its place. A single stream is in `stream-socket.test.ts`.

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step();
});
const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise(resolve => setImmediate(resolve));
};

/** An edge whose requests the test answers, or which answers at once with `answer`. */
function edge({ answer, ...own }: Partial<EdgeLimits> & { answer?: string } = {}) {
  const limits = { ...limitsWithin(1000), ...own };
  const context: ConnectionContext = {
    ...{ limits, log: silentLog, trustForwardedHeaders: false, clock: { nowMs: 1_000_000 } },
    requestHead: new RequestHead(limits.headerLinesMax),
    ...{
      turns: new Http2Turns(),
      largeHeads: new LargeHeads(limits),
      waiting: new WaitingBytes(limits.waitingBytesMax),
    },
    responseHead: new ResponseHead(limits.headerLinesMax),
    ...{ scratch: Buffer.alloc(0), clients: new Set(), stopping: false },
  };
  const table = new ClientTable(limits, false);
  const asked: { client: Client; path: string; abort: AbortSignal; answer(text?: string): void }[] = [];
  const serve = (client: Client, head: RequestHead) => {
    const kept = head.keep();
    const reply = (text = 'ok') => client.refuse(plainAnswer(200, text), kept);
    const abort = client.beginRouting();
    asked.push({ client, path: head.target, abort, answer: reply });
    if (answer !== undefined) reply(answer);
  };
  const listener = listenPlain({ context, table, serve }, { hostname: '127.0.0.1', port: 0 }, true);
  undo.push(() => listener.stop(true));
  const connection = () => [...context.clients].find(client => client instanceof Http2Connection)!;
  return { ...{ context, limits, table, asked, connection, port: listener.port } };
}

/** A client of its own kind, and what happened to it. */
function client(port: number) {
  const session = connect(`http://127.0.0.1:${port}`);
  const state = { isClosed: false, isLeaving: false };
  session.on('error', () => {});
  session.on('goaway', () => void (state.isLeaving = true));
  session.on('close', () => void (state.isClosed = true));
  undo.push(() => session.destroy());
  return { session, state };
}
type Headers = Parameters<ClientHttp2Session['request']>[0];
function ask(session: ClientHttp2Session, headers: Headers = {}, endStream = true) {
  const stream: ClientHttp2Stream = session.request({ ':path': '/', ...headers }, { endStream });
  const got = { status: 0, text: '', isOver: false, isClosed: false };
  stream.on('response', given => void (got.status = Number(given[':status'])));
  stream.on('data', (bytes: Buffer) => void (got.text += bytes.toString()));
  stream.on('end', () => void (got.isOver = true));
  stream.on('close', () => void (got.isClosed = true));
  stream.on('error', () => {});
  return { stream, got };
}

test('each stream is served, and the connection keeps its place between them', async () => {
  const { port, asked, connection, limits, context, table } = edge();
  const { session } = client(port);
  const [first, second] = [ask(session, { ':path': '/1' }), ask(session, { ':path': '/2' })];
  await until(() => asked.length === 2);
  expect([asked.map(({ path }) => path), connection().deadlineMs, table.size]).toEqual([
    ...[['/1', '/2'], Number.POSITIVE_INFINITY, 1],
  ]);
  // A connection, and two streams.
  expect(context.clients.size).toBe(3);
  asked[1]?.answer('two');
  await until(() => second.got.isOver);
  expect([second.got.status, JSON.parse(second.got.text).message, first.got.status]).toEqual([200, 'two', 0]);
  await until(() => context.clients.size === 2);
  expect(connection().deadlineMs).toBe(Number.POSITIVE_INFINITY);
  context.clock.nowMs += 10;
  asked[0]?.answer('one');
  await until(() => context.clients.size === 1);
  expect(connection().deadlineMs).toBe(context.clock.nowMs + limits.keepAliveTimeoutMs);
});

test('a connection without a request waits for the first byte, and ends when nothing comes', async () => {
  const { port, context, connection, limits, table } = edge();
  const { state } = client(port);
  await until(() => context.clients.size === 1 && connection() !== undefined);
  expect(connection().deadlineMs).toBe(context.clock.nowMs + limits.firstByteTimeoutMs);
  connection().expired();
  await until(() => state.isClosed);
  expect([context.clients.size, table.size]).toEqual([0, 0]);
});

test('a place is taken by a newcomer only while no stream is open', async () => {
  const { port, asked, table, connection, context } = edge({ clientConnectionsMax: 1, localConnectionsReserved: 0 });
  const { session, state } = client(port);
  const { got } = ask(session);
  await until(() => asked.length === 1);
  expect(table.admit('127.0.0.1', 0)).toBeNull();
  asked[0]?.answer();
  await until(() => got.isOver && context.clients.size === 1);
  expect(connection()).toBeDefined();
  const seat = table.admit('127.0.0.1', 0);
  expect([seat === null, table.evicted]).toEqual([false, 1]);
  await until(() => state.isClosed && context.clients.size === 0);
  expect(table.size).toBe(1);
});

test('a connection that retires ends after its streams', async () => {
  const { port, asked, connection, context } = edge();
  const { session, state } = client(port);
  const { got } = ask(session);
  await until(() => asked.length === 1);
  connection().retire();
  await until(() => state.isLeaving);
  expect(state.isClosed).toBe(false);
  asked[0]?.answer('late');
  await until(() => got.isOver);
  expect(got.text).toContain('late');
  session.close();
  await until(() => state.isClosed && context.clients.size === 0);
});

test('with the connection its streams are lost', async () => {
  for (const how of ['terminate', 'client'] as const) {
    const { port, asked, connection, context, table } = edge();
    const { session, state } = client(port);
    ask(session, {}, false);
    ask(session);
    await until(() => asked.length === 2);
    if (how === 'terminate') connection().terminate();
    else session.destroy();
    await until(() => state.isClosed && context.clients.size === 0);
    expect([asked.map(({ abort }) => abort.aborted), table.size]).toEqual([[true, true], 0]);
  }
});

test('trouble of the socket ends all and is nobody else’s', async () => {
  const { port, asked, connection, context, table } = edge();
  const { session, state } = client(port);
  ask(session);
  await until(() => asked.length === 1);
  const gone = connection() as Http2Connection;
  gone.wasClosed(new Error('the connection was reset'));
  gone.wasClosed(new Error('again'));
  gone.terminate();
  await Bun.sleep(5);
  expect([asked[0]?.abort.aborted, context.clients.size, table.size]).toEqual([true, 0, 0]);
  session.destroy();
  await until(() => state.isClosed);
});

test('a stream that is reset gives its request up, and no other', async () => {
  const { port, asked, context } = edge();
  const { session } = client(port);
  const { stream } = ask(session);
  const other = ask(session);
  await until(() => asked.length === 2);
  stream.close(8);
  await until(() => asked[0]?.abort.aborted === true);
  await until(() => context.clients.size === 2);
  asked[1]?.answer();
  await until(() => other.got.isOver);
});

/** A client with an HTTP/2 implementation of its own, the largest possible windows, and reads on command. */
async function plainClient(port: number) {
  const frame = (type: number, flags: number, stream: number, body: Buffer) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(body.length, 0, 3);
    head.set([type, flags], 3);
    head.writeUInt32BE(stream, 5);
    return Buffer.concat([head, body]);
  };
  const it = { got: 0, first: Buffer.alloc(0) as Buffer, isClosed: false };
  const socket = await Bun.connect({
    ...{ hostname: '127.0.0.1', port, allowHalfOpen: true },
    socket: {
      data(_, bytes) {
        it.got += bytes.length;
        if (it.first.length < 1000) it.first = Buffer.concat([it.first, bytes]);
      },
      close: () => void (it.isClosed = true),
      end: () => void (it.isClosed = true),
      error() {},
    },
  });
  undo.push(() => socket.terminate());
  const sends = (...frames: Buffer[]) => void socket.write(Buffer.concat(frames));
  const window = Buffer.of(0, 4, 0x7f, 0xff, 0xff, 0xff); // INITIAL_WINDOW_SIZE
  const more = Buffer.of(0x7f, 0xfe, 0xff, 0xff);
  sends(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, window), frame(8, 0, 0, more));
  const asksFor = (stream: number, flags: number, fields: Buffer) => sends(frame(1, flags, stream, fields));
  // GET, http, / and an authority, as HPACK indices.
  const asks = (stream: number) => asksFor(stream, 5, Buffer.of(0x82, 0x86, 0x84, 0x41, 1, 0x78));
  const resets = (stream: number) => sends(frame(3, 0, stream, Buffer.of(0, 0, 0, 8)));
  return { it, socket, asks, asksFor, resets, sends };
}

test('an invalid request is answered, and the connection goes on', async () => {
  const { port, asked } = edge({ answer: 'ok' });
  const { it, asks, asksFor } = await plainClient(port);
  // A CONNECT that asks for an unknown protocol.
  const text = (...parts: string[]) =>
    Buffer.concat(parts.map(part => Buffer.from([part.length, ...Buffer.from(part)])));
  const connect = [
    Buffer.of(0x86, 0x84, 0x41, 1, 0x78, 0x42),
    text('CONNECT'),
    Buffer.of(0x40),
    text(':protocol', 'none'),
  ];
  asksFor(1, 4, Buffer.concat(connect));
  // The status 400, as its HPACK index.
  await until(() => it.first.includes(0x8c));
  expect(asked).toEqual([]);
  asks(3);
  await until(() => it.first.includes('"ok"'));
  expect(asked).toHaveLength(1);
});

test('a client that resets without end is thrown out, one that does so now and then is not', async () => {
  const { port, context, asked, connection } = edge();
  const { it, asks, resets } = await plainClient(port);
  const reset = async (from: number, count: number) => {
    for (let index = from; index < from + count; index++) {
      const before = asked.length;
      asks(2 * index + 1);
      await until(() => asked.length > before || it.isClosed);
      resets(2 * index + 1);
      await until(() => asked.at(-1)?.abort.aborted === true || it.isClosed);
    }
  };
  await reset(0, 500);
  context.clock.nowMs += 10_001;
  await reset(500, 500);
  await until(() => context.clients.size === 1);
  expect(it.isClosed).toBe(false);
  expect(connection()).toBeDefined();
  await reset(1000, 1);
  await until(() => it.isClosed && context.clients.size === 0);
}, 20_000);

test('a client that reads nothing holds no more than its window, and has a while to read what is over', async () => {
  const text = 'x'.repeat(16 << 20);
  const { port, context, limits, connection, table } = edge({ answer: text });
  const { it, asks, socket } = await plainClient(port);
  socket.pause();
  asks(1);
  await until(() => context.clients.size === 2);
  const at = connection() as Http2Connection;
  await until(() => at.isFull);
  for (let before = -1; before !== at.carried.total; await Bun.sleep(20)) before = at.carried.total;
  expect(at.carried.total).toBeLessThan(text.length);
  expect([context.clients.size, table.size]).toEqual([2, 1]);
  socket.resume();
  await until(() => it.got > text.length);
  await until(() => context.clients.size === 1);
  expect([at.isFull, at.deadlineMs]).toEqual([false, context.clock.nowMs + limits.keepAliveTimeoutMs]);
});

test('answers that are over and wait for their client have a time, which begins anew with what it takes', async () => {
  const text = 'x'.repeat(60_000);
  const { port, context, limits, connection, asked } = edge({ answer: text });
  const { asks, socket, it } = await plainClient(port);
  socket.pause();
  let stream = -1;
  const at = () => connection() as Http2Connection;
  // Until some of them are over but not yet with the kernel.
  do {
    asks((stream += 2));
    const before = asked.length;
    await until(() => asked.length > before || connection() === undefined);
    await Bun.sleep(1);
  } while (at().deadlineMs !== context.clock.nowMs + limits.unreadTimeoutMs);
  context.clock.nowMs += 500;
  asks((stream += 2));
  await until(() => asked.length === (stream + 1) / 2);
  // One that is not over has a different deadline.
  expect(at().deadlineMs).toBeOneOf([1_000_000 + limits.unreadTimeoutMs, 1_000_000 + limits.streamIdleTimeoutMs]);
  context.clock.nowMs += 1000;
  socket.resume();
  await until(() => it.got > asked.length * text.length && context.clients.size === 1);
  expect(at().deadlineMs).toBe(context.clock.nowMs + limits.keepAliveTimeoutMs);
});

test('half a connection is of no use', async () => {
  const { port, context } = edge();
  const { it, socket, asks } = await plainClient(port);
  asks(1);
  await until(() => context.clients.size === 2);
  socket.shutdown();
  await until(() => it.isClosed && context.clients.size === 0);
});

test('bytes that are no HTTP/2 end the connection', async () => {
  const { port, context } = edge();
  const { it, sends, asks } = await plainClient(port);
  asks(1);
  await until(() => context.clients.size === 2);
  sends(Buffer.alloc(1000, 0xff));
  await until(() => it.isClosed && context.clients.size === 0);
});
