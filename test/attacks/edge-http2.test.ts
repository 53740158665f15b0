import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout } from 'bun:test';
import { connect, createServer, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type Fixture, startFixture } from '../edge/support/fixture.ts';
import { RawSocket, startRawServer } from '../edge/support/raw-socket.ts';
import { flag, frame, frameType, framesOf, headerBlock, headFrame, preface, setting } from './support/http2-frames.ts';
import { type Attack, attackWall } from './support/wall.ts';

// HTTP/2 at the edge, and gRPC calls through it: messages of clients and services that no library would send.

setDefaultTimeout(30_000);

let fixture: Fixture;
/** A service that accepts everything, and the requests it got. */
let service: Http2Server;
let asked: { headers: IncomingHttpHeaders; body: string; trailers: IncomingHttpHeaders }[];

beforeAll(async () => {
  service = createServer({});
  service.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const seen = { headers, body: '', trailers: {} as IncomingHttpHeaders };
    asked.push(seen);
    stream.on('error', () => {});
    stream.on('trailers', trailers => (seen.trailers = trailers));
    stream.on('data', (bytes: Buffer) => (seen.body += bytes.toString('latin1')));
    stream.on('end', () => {
      // Its client may have gone meanwhile.
      if (stream.destroyed) return;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '0' }, { endStream: true });
    });
  });
  await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve));
  fixture = startFixture();
  fixture.sandbox('one');
  fixture.mapPort(80, (service.address() as AddressInfo).port);
});
beforeEach(() => {
  asked = [];
});
afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  service.close();
});

type Fields = readonly (readonly [string, string])[];
const call: Fields = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/a.B/C'],
  [':authority', '80-one.localhost'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
];
/** The fields of a call, with some replaced or added. */
const changed = (...fields: Fields): Fields =>
  [...call.filter(([name]) => !name.startsWith(':') || !fields.some(([other]) => other === name)), ...fields].toSorted(
    ([a], [b]) => Number(b.startsWith(':')) - Number(a.startsWith(':')),
  );

/** A client that has sent its preface. */
async function client(): Promise<RawSocket> {
  const raw = await RawSocket.connect(fixture.port);
  raw.send(Buffer.concat([preface, frame(frameType.settings, 0, 0)]));
  await raw.until(({ received }) => received.length >= 9);
  return raw;
}

const frames = (raw: RawSocket) => framesOf(Buffer.from(raw.received, 'latin1'));
/** The stream was answered to its end or reset, or the connection is gone. */
const isOver = (raw: RawSocket, stream = 1) =>
  raw.end !== undefined ||
  raw.ended ||
  frames(raw).some(
    ({ type, flags, stream: of }) =>
      type === frameType.goaway ||
      (of === stream && (type === frameType.reset || ((type === 0 || type === 1) && (flags & flag.endStream) !== 0))),
  );

/** The edge serves others, has no request left, and has thrown nothing. */
async function edgeIsWell(): Promise<void> {
  expect((await fetch(`${fixture.url}/api`)).status).toBe(200);
  while (fixture.edge.stats().inSandboxes > 0) await Bun.sleep(2);
  expect(fixture.complaints).toEqual([]);
}

/** Sends a call with these fields, and a body. */
async function send(fields: Fields, ...behind: Buffer[]): Promise<void> {
  const raw = await client();
  raw.send(Buffer.concat([headFrame(1, fields), ...(behind.length > 0 ? behind : [lastData('hello')])]));
  await raw.until(() => isOver(raw));
  raw.close();
  await edgeIsWell();
}
const lastData = (text: string) => frame(frameType.data, flag.endStream, 1, Buffer.from(text));

/** Heads that could become another request, host or line on the way. */
const smuggled: Record<string, Fields> = {
  'a line end in a value': changed(['x-a', 'b\r\nx-smuggled: yes']),
  'a line feed in a value': changed(['x-a', 'b\nx-smuggled: yes']),
  'a NUL in a value': changed(['x-a', 'b\0']),
  'a line end in a name': changed(['x-a: b\r\nx-smuggled', 'yes']),
  'a space in a name': changed(['x smuggled', 'yes']),
  'a colon in a name': changed(['x:smuggled', 'yes']),
  'an empty name': changed(['', 'x-smuggled']),
  'a request in the path': changed([':path', '/ HTTP/1.1\r\nx-smuggled: yes\r\n\r\nGET /x']),
  'a space in the path': changed([':path', '/a x-smuggled']),
  'a path without slash': changed([':path', 'x-smuggled']),
  'an empty path': changed([':path', '']),
  'an absolute path': changed([':path', 'http://80-two.localhost/x-smuggled']),
  'a line end in the authority': changed([':authority', '80-one.localhost\r\nx-smuggled: yes']),
  'a user in the authority': changed([':authority', 'x-smuggled@80-one.localhost']),
  'a line end in the method': changed([':method', 'POST / HTTP/1.1\r\nx-smuggled: yes\r\n\r\nGET']),
  'two paths': [...call.slice(0, 4), [':path', '/x-smuggled'], ...call.slice(4)],
  'two authorities': [...call.slice(0, 4), [':authority', '80-x-smuggled.localhost'], ...call.slice(4)],
  'a pseudo-field of responses': [...call.slice(0, 4), [':status', '200'], ...call.slice(4)],
  'an unknown pseudo-field': [...call.slice(0, 4), [':smuggled', 'x-smuggled'], ...call.slice(4)],
  'a pseudo-field behind others': [...call, [':path', '/x-smuggled']],
  'two lengths': changed(['content-length', '5'], ['content-length', '6']),
  'a length in a list': changed(['content-length', '5, 6']),
  'a length with a sign': changed(['content-length', '+5']),
  'a length that is too short': changed(['content-length', '2']),
  'a length that is too long': changed(['content-length', '50']),
};
const smuggling: Attack[] = Object.entries(smuggled).map(([name, fields]) => [
  `a call with ${name} reaches the service as something else`,
  async () => {
    await send(fields);
    expect(JSON.stringify(asked)).not.toContain('smuggled');
    for (const { headers } of asked) expect(headers[':path']).toBe('/a.B/C');
    expect(asked.filter(({ body }) => body !== '' && !'hello'.startsWith(body))).toEqual([]);
    expect(asked.length).toBeLessThanOrEqual(1);
  },
]);

/** Fields about a connection, or that only the edge may set: the service must not hear them from a client. */
const ofEdge: Fields = [
  ['connection', 'forged'],
  ['keep-alive', 'forged'],
  ['proxy-connection', 'forged'],
  ['transfer-encoding', 'chunked, forged'],
  ['upgrade', 'forged'],
  ['http2-settings', 'forged'],
  ['host', 'forged.example'],
  ['x-forwarded-for', 'forged'],
  ['x-forwarded-proto', 'forged'],
  ['x-forwarded-host', 'forged'],
  ['x-real-ip', 'forged'],
  ['forwarded', 'forged'],
  ['x-atoll-control', 'forged'],
  ['e2b-sandbox-id', 'forged'],
  ['svc-sandbox-port', 'forged'],
  ['e2b-traffic-access-token', 'forged'],
  ['X-Upper', 'forged'],
];
const forgery: Attack[] = ofEdge.map(([name, value]) => [
  `a call tells the service ${name}: ${value}`,
  async () => {
    await send(changed([name, value]));
    expect(JSON.stringify(asked)).not.toContain('forged');
  },
]);

/** Fields behind a body, after whoever decides by them has already looked. */
const behind: Fields = [
  ['content-length', '0'],
  ['transfer-encoding', 'chunked'],
  ['host', 'forbidden'],
  ['te', 'forbidden'],
  ['connection', 'forbidden'],
  ['upgrade', 'forbidden'],
  ['expect', '100-continue'],
  ['trailer', 'forbidden'],
  ['cookie', 'forbidden'],
  ['authorization', 'forbidden'],
  ['x-access-token', 'forbidden'],
  ['x-forwarded-for', 'forbidden'],
  ['x-atoll-control', 'forbidden'],
  ['e2b-traffic-access-token', 'forbidden'],
  [':path', '/forbidden'],
  [':status', '200'],
  ['x-a', 'b\r\nforbidden: yes'],
  ['x\r\nforbidden', 'yes'],
];
const trailing: Attack[] = behind.map(([name, value]) => [
  `a call has ${JSON.stringify(name)} behind its body`,
  async () => {
    const trailers = headFrame(1, [[name, value]], flag.endHeaders | flag.endStream);
    await send(call, frame(frameType.data, 0, 1, Buffer.from('hello')), trailers);
    for (const { trailers: got } of asked) expect(Object.keys(got).filter(key => typeof key === 'string')).toEqual([]);
  },
]);

/** Streams that are not requests to a service. */
const streams: Record<string, Fields> = {
  'CONNECT to a host': changed([':method', 'CONNECT']),
  'CONNECT for another protocol': changed([':method', 'CONNECT'], [':protocol', 'connect-tcp']),
  'a protocol without CONNECT': changed([':protocol', 'websocket']),
  'a WebSocket with a key of its own': changed(
    [':method', 'CONNECT'],
    [':protocol', 'websocket'],
    ['sec-websocket-key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
  ),
  'a WebSocket with a length': changed([':method', 'CONNECT'], [':protocol', 'websocket'], ['content-length', '5']),
  "the agent's own route": changed([':authority', '49983-one.localhost'], [':path', '/init']),
  "the agent's own route, encoded": changed([':authority', '49983-one.localhost'], [':path', '/%69nit']),
  'a sandbox that is not there': changed([':authority', '80-two.localhost']),
  'no sandbox': changed([':authority', '80-.localhost']),
  'a port that is none': changed([':authority', '0-one.localhost']),
};
const refused: Attack[] = Object.entries(streams).map(([name, fields]) => [
  `a stream asks for ${name}`,
  async () => {
    await send(fields);
    expect(asked).toEqual([]);
  },
]);

/** Frames that cost the edge more than their sender. */
const floods: Record<string, (raw: RawSocket) => Promise<void> | void> = {
  'streams that are reset at once': async raw => {
    for (let stream = 1; stream < 4000 && raw.end === undefined; stream += 2) {
      const reset = frame(frameType.reset, 0, stream, Buffer.from([0, 0, 0, 8]));
      raw.send(Buffer.concat([headFrame(stream, call), reset]));
      if (stream % 64 === 1) await Bun.sleep(1);
    }
  },
  'a thousand streams at once': raw => {
    for (let stream = 1; stream < 2000; stream += 2) raw.send(headFrame(stream, call));
  },
  'settings without end': raw => {
    const one = frame(frameType.settings, 0, 0, setting(4, 65_535));
    for (let round = 0; round < 100; round++) raw.send(Buffer.concat(Array.from({ length: 100 }, () => one)));
  },
  'pings without end': raw => {
    const one = frame(frameType.ping, 0, 0, Buffer.alloc(8));
    for (let round = 0; round < 100; round++) raw.send(Buffer.concat(Array.from({ length: 100 }, () => one)));
  },
  'empty data without end': raw => {
    raw.send(headFrame(1, call));
    const one = frame(frameType.data, 0, 1);
    for (let round = 0; round < 100; round++) raw.send(Buffer.concat(Array.from({ length: 100 }, () => one)));
  },
  'a head that is never whole': raw => {
    raw.send(headFrame(1, call, 0));
    const more = frame(frameType.more, 0, 1, headerBlock([['x-a', 'y'.repeat(16_000)]]));
    for (let round = 0; round < 200; round++) raw.send(more);
  },
  'a head of 200 KiB': raw => {
    const long = headerBlock([
      ...call,
      ...Array.from({ length: 20 }, (_, at) => [`x-${at}`, 'y'.repeat(10_000)] as const),
    ]);
    for (let at = 0; at < long.length; at += 16_000)
      raw.send(
        frame(
          at === 0 ? frameType.headers : frameType.more,
          at + 16_000 >= long.length ? flag.endHeaders : 0,
          1,
          long.subarray(at, at + 16_000),
        ),
      );
  },
  'a head of a thousand fields': raw => {
    const many = headerBlock([...call, ...Array.from({ length: 1000 }, (_, at) => [`x-${at}`, 'y'] as const)]);
    raw.send(frame(frameType.headers, flag.endHeaders, 1, many.subarray(0, 16_000)));
  },
  'one field a thousand times by its index': raw => {
    const first = Buffer.concat([headerBlock(call), Buffer.from([0x40]), Buffer.from([3]), Buffer.from('x-a')]);
    const value = Buffer.concat([Buffer.from([127, 0xe1, 0x1e]), Buffer.alloc(4000, 'y')]);
    const block = Buffer.concat([first, value, Buffer.alloc(10_000, 0x80 | 62)]);
    raw.send(frame(frameType.headers, flag.endHeaders, 1, block.subarray(0, 16_384)));
  },
  'windows of nothing': raw => {
    raw.send(headFrame(1, call));
    for (let round = 0; round < 1000; round++) raw.send(frame(frameType.window, 0, 1, Buffer.from([0, 0, 0, 0])));
  },
  'a window beyond its bound': raw => {
    raw.send(headFrame(1, call));
    for (let round = 0; round < 3; round++) raw.send(frame(frameType.window, 0, 1, Buffer.from([127, 255, 255, 255])));
  },
  'data on no stream': raw => raw.send(frame(frameType.data, 0, 0, Buffer.from('x'))),
  'data on a stream that nobody opened': raw => raw.send(frame(frameType.data, 0, 7, Buffer.from('x'))),
  'a head on an even stream': raw => raw.send(headFrame(2, call)),
  'a head on a stream before': raw => raw.send(Buffer.concat([headFrame(5, call), headFrame(3, call)])),
  'a frame that is too long': raw => raw.send(frame(frameType.data, 0, 1, Buffer.alloc(100_000))),
  'a push of a client': raw => raw.send(frame(frameType.push, flag.endHeaders, 1, Buffer.alloc(4))),
  'settings of five octets': raw => raw.send(frame(frameType.settings, 0, 0, Buffer.alloc(5))),
  'a ping of seven octets': raw => raw.send(frame(frameType.ping, 0, 0, Buffer.alloc(7))),
  'broken HPACK': raw =>
    raw.send(frame(frameType.headers, flag.endHeaders, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff]))),
};
const flooding: Attack[] = Object.entries(floods).map(([name, attack]) => [
  `a client sends ${name}`,
  async () => {
    const raw = await client();
    await attack(raw);
    expect((await fetch(`${fixture.url}/api`)).status).toBe(200);
    raw.send(frame(frameType.goaway, 0, 0, Buffer.alloc(8)));
    raw.reset();
    await edgeIsWell();
    while (fixture.edge.stats().clientConnections > 1) await Bun.sleep(2);
  },
]);

const response: Fields = [
  [':status', '200'],
  ['content-type', 'application/grpc'],
];
const body = frame(frameType.data, 0, 1, Buffer.from('bytes'));
const behindBody = (fields: Fields) => headFrame(1, fields, flag.endHeaders | flag.endStream);
const fine = behindBody([['grpc-status', '0']]);

/** A service's answers that are meant to confuse the edge or the client. */
const answers: Record<string, Buffer[]> = {
  'HTTP/1.1': [Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison')],
  'no HTTP': [Buffer.from('SSH-2.0-OpenSSH_9.2\r\n')],
  'a reset': [frame(frameType.reset, 0, 1, Buffer.from([0, 0, 0, 2]))],
  'a farewell': [frame(frameType.goaway, 0, 0, Buffer.alloc(8)), 'close' as never],
  'no status': [headFrame(1, [['content-type', 'application/grpc']]), body, fine],
  'a status that is no number': [headFrame(1, [[':status', '2x0']]), body, fine],
  'a status of two digits': [headFrame(1, [[':status', '20']]), body, fine],
  'a status of 101': [headFrame(1, [[':status', '101']]), body, fine],
  'two statuses': [headFrame(1, [...response, [':status', '404']]), body, fine],
  'a path': [headFrame(1, [[':path', '/'], ...response]), body, fine],
  'a line end in a value': [headFrame(1, [...response, ['x-a', 'b\r\nset-cookie: poison']]), body, fine],
  'a line end in a name': [headFrame(1, [...response, ['x\r\nset-cookie', 'poison']]), body, fine],
  'a name in capitals': [headFrame(1, [...response, ['X-Poison', 'poison']]), body, fine],
  'a pseudo-field behind the body': [headFrame(1, response), body, behindBody([[':status', '500']])],
  'a line end behind the body': [headFrame(1, response), body, behindBody([['x-a', 'b\r\ngrpc-status: 0']])],
  'fields behind the body that are not the end': [headFrame(1, response), body, headFrame(1, [['x-a', 'b']]), body],
  'data before its head': [body, headFrame(1, response), fine],
  'data on another stream': [headFrame(3, response), frame(frameType.data, 0, 3, Buffer.from('poison'))],
  'data on no stream': [headFrame(1, response), frame(frameType.data, 0, 0, Buffer.from('poison'))],
  'a push': [frame(frameType.push, flag.endHeaders, 1, Buffer.concat([Buffer.from([0, 0, 0, 2]), headerBlock(call)]))],
  'a head of 200 KiB': [
    headFrame(1, response, 0),
    ...Array.from({ length: 13 }, (_, at) =>
      frame(frameType.more, at === 12 ? flag.endHeaders : 0, 1, headerBlock([[`x-${at}`, 'y'.repeat(16_000)]])),
    ),
  ],
  'a head that is never whole': [
    headFrame(1, response, 0),
    ...Array.from({ length: 100 }, (_, at) =>
      frame(frameType.more, 0, 1, headerBlock([[`x-${at}`, 'y'.repeat(16_000)]])),
    ),
  ],
  'a thousand answers for the time being': [
    ...Array.from({ length: 1000 }, () => headFrame(1, [[':status', '103']])),
    headFrame(1, response),
    body,
    fine,
  ],
  'a head of a thousand fields': [
    headFrame(1, [...response, ...Array.from({ length: 1000 }, (_, at) => [`x${at}`, ''] as const)]),
    body,
    fine,
  ],
  'more than the window has': [
    headFrame(1, response),
    ...Array.from({ length: 200 }, () => frame(frameType.data, 0, 1, Buffer.alloc(16_384))),
    'close' as never,
  ],
  'a frame that is too long': [headFrame(1, response), frame(frameType.data, 0, 1, Buffer.alloc(100_000))],
  'broken HPACK': [frame(frameType.headers, flag.endHeaders, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff]))],
  'settings of five octets': [frame(frameType.settings, 0, 0, Buffer.alloc(5))],
  'a window of nothing': [frame(frameType.window, 0, 0, Buffer.from([0, 0, 0, 0]))],
  'half of its body': [headFrame(1, response), body, 'close' as never],
  'half of a frame': [headFrame(1, response), body.subarray(0, 7), 'close' as never],
};
const hostile: Attack[] = Object.entries(answers).map(([name, parts]) => [
  `a service answers a call with ${name}`,
  async () => {
    using server = startRawServer();
    fixture.mapPort(90, server.port);
    const session = connect(fixture.url);
    session.on('error', () => {});
    const got = { status: 0, body: '', trailers: {} as IncomingHttpHeaders, headers: {} as IncomingHttpHeaders };
    const stream = session.request({ ...Object.fromEntries(call), ':authority': '90-one.localhost' });
    stream.on('response', headers => void Object.assign(got, { headers, status: headers[':status'] }));
    stream.on('data', (bytes: Buffer) => (got.body += bytes.toString('latin1')));
    stream.on('trailers', trailers => (got.trailers = trailers));
    stream.on('error', () => {});
    const over = new Promise(resolve => stream.once('close', resolve));
    stream.end('x');
    const upstream = await server.accept();
    const hasHead = (bytes: Buffer) =>
      framesOf(bytes.subarray(preface.length)).some(({ type }) => type === frameType.headers);
    await upstream.until(({ received }) => hasHead(Buffer.from(received, 'latin1')));
    upstream.send(frame(frameType.settings, 0, 0));
    for (const part of parts) {
      if ((part as unknown) === 'close') upstream.close();
      else upstream.send(part);
    }
    // What is neither whole nor wrong goes on until its service ends.
    const ended = await Promise.race([over.then(() => true), Bun.sleep(1500).then(() => false)]);
    if (!ended) upstream.reset();
    await over;
    // It is no success, and nothing forged has come through.
    const said = got.headers['grpc-status'] ?? got.trailers['grpc-status'];
    expect({ name, said: said === '0' && stream.rstCode === 0 }).toEqual({ name, said: false });
    expect(JSON.stringify([got.headers, got.trailers])).not.toContain('poison');
    expect(got.headers['set-cookie']).toBeUndefined();
    session.destroy();
    await edgeIsWell();
  },
]);

attackWall({ name: 'edge, HTTP/2', atLeast: 110 }, [
  ...smuggling,
  ...forgery,
  ...trailing,
  ...refused,
  ...flooding,
  ...hostile,
]);
