import { expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import type { Method } from './call.ts';
import { encodeEnd, encodeMessage, readMessages } from './envelope.ts';
import type { Outbox } from './outbox.ts';
import { serveCall } from './serve-call.ts';

type Body = string | Uint8Array<ArrayBuffer> | null;

const requestOf = (type: string, body: Body, headers: Record<string, string> = {}, signal?: AbortSignal) =>
  new Request('http://agent/', {
    method: 'POST',
    body,
    headers: { 'content-type': type, ...headers },
    ...(signal && { signal }),
  });
const unary = (body: Body, headers?: Record<string, string>) => requestOf('application/json', body, headers);
const streamType = 'application/connect+json';

const echo: Method = {
  kind: 'unary',
  messageBytesMax: 100,
  answer: (message, { username }) => ({ ...message, username }),
};

/** The envelopes of an answer: their flags and contents. */
async function envelopesOf(response: Response): Promise<[flag: number, value: unknown][]> {
  const bytes = Buffer.from(await response.arrayBuffer());
  const found: [number, unknown][] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    found.push([bytes.readUInt8(at), JSON.parse(bytes.toString('utf8', at + 5, end))]);
    at = end;
  }
  return found;
}

test('one message is answered with one', async () => {
  const authorization = `Basic ${Buffer.from('ann:').toString('base64')}`;
  const response = await serveCall(echo, unary('{"a":1}', { authorization }));
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
  expect(await response.json()).toEqual({ a: 1, username: 'ann' });
  const later: Method = { ...echo, answer: async () => ({ later: true }) };
  const typed = requestOf('Application/JSON; charset=utf-8', '{}', { 'connect-timeout-ms': '60000' });
  expect(await (await serveCall(later, typed)).json()).toEqual({ later: true });
});

test('a message of another type is refused, with the type that is taken', async () => {
  const stream: Method = { kind: 'server-stream', open: () => {} };
  for (const [method, type, accepted] of [
    [echo, streamType, 'application/json'],
    [echo, 'text/plain', 'application/json'],
    [stream, 'application/json', streamType],
  ] as const) {
    const response = await serveCall(method, requestOf(type, '{}'));
    expect([response.status, response.headers.get('accept-post')]).toEqual([415, accepted]);
  }
  expect((await serveCall(echo, new Request('http://agent/', { method: 'POST' }))).status).toBe(415);
});

test('the error of a unary call becomes its status and body', async () => {
  const failing = (answer: () => unknown) => serveCall({ kind: 'unary', messageBytesMax: 100, answer }, unary('{}'));
  const missing = await failing(() => {
    throw new AtollError('not_found', 'no such thing');
  });
  expect([missing.status, await missing.json()]).toEqual([404, { code: 'not_found', message: 'no such thing' }]);
  const broken = await failing(() => Promise.reject(new Error('broken')));
  expect([broken.status, await broken.json()]).toEqual([500, { code: 'internal', message: 'broken' }]);
  expect(broken.headers.get('content-type')).toBe('application/json');
  const codeOf = async (request: Request) =>
    ((await (await serveCall(echo, request)).json()) as { code?: string }).code;
  expect(await codeOf(unary('[]'))).toBe('invalid_argument');
  expect(await codeOf(unary(`{"a":"${'x'.repeat(100)}"}`))).toBe('resource_exhausted');
  expect(await codeOf(unary('{}', { 'content-encoding': 'gzip' }))).toBe('unimplemented');
  expect(await codeOf(unary('{}', { 'content-encoding': 'identity' }))).toBeUndefined();
  expect(await codeOf(unary('{}', { 'connect-timeout-ms': 'soon' }))).toBe('invalid_argument');
});

test('an answer that is not there at its deadline is none', async () => {
  const never: Method = { ...echo, answer: () => new Promise(() => {}) };
  const response = await serveCall(never, unary('{}', { 'connect-timeout-ms': '5' }));
  expect([response.status, await response.json()]).toEqual([
    504,
    { code: 'deadline_exceeded', message: 'not done within 5 ms' },
  ]);
  const stream: Method = { kind: 'client-stream', messageBytesMax: 100, answer: () => new Promise(() => {}) };
  const late = await serveCall(stream, requestOf(streamType, encodeEnd(), { 'connect-timeout-ms': '5' }));
  expect(await envelopesOf(late)).toMatchObject([[2, { error: { code: 'deadline_exceeded' } }]]);
});

test('many messages are answered with one, and the end', async () => {
  const count: Method = {
    kind: 'client-stream',
    messageBytesMax: 100,
    async answer(messages) {
      const all = await Array.fromAsync(messages);
      return { all };
    },
  };
  const body = Buffer.concat([encodeMessage({ n: 1 }), encodeMessage({ n: 2 }), encodeEnd()]);
  const response = await serveCall(count, requestOf(streamType, body));
  expect([response.status, response.headers.get('content-type')]).toEqual([200, streamType]);
  expect(await envelopesOf(response)).toEqual([
    [0, { all: [{ n: 1 }, { n: 2 }] }],
    [2, {}],
  ]);
  const long = encodeMessage({ n: 'x'.repeat(100) });
  const refused = await serveCall(count, requestOf(streamType, long));
  expect([refused.status, await envelopesOf(refused)]).toMatchObject([
    200,
    [[2, { error: { code: 'resource_exhausted' } }]],
  ]);
});

test('one message opens a stream, which ends with what its method says', async () => {
  const open = (message: unknown, _: unknown, outbox: Outbox) => {
    outbox.addMessage({ got: message });
    outbox.end();
  };
  const method: Method = { kind: 'server-stream', open };
  const response = await serveCall(method, requestOf(streamType, encodeMessage({ a: 1 })));
  expect([response.status, response.headers.get('content-type')]).toEqual([200, streamType]);
  expect(await envelopesOf(response)).toEqual([
    [0, { got: { a: 1 } }],
    [2, {}],
  ]);
  const bytes = Buffer.concat([encodeMessage({ a: 2 }), encodeMessage({ a: 3 })]);
  for (const length of [bytes.length, 5 << 20]) {
    const announced = requestOf(streamType, bytes, { 'content-length': String(length) });
    expect(await envelopesOf(await serveCall(method, announced))).toEqual([
      [0, { got: { a: 2 } }],
      [2, {}],
    ]);
  }
  const without = await serveCall(method, requestOf(streamType, null));
  expect(await envelopesOf(without)).toEqual([
    [2, { error: { code: 'invalid_argument', message: 'the request holds no message' } }],
  ]);
  const failing: Method = { kind: 'server-stream', open: () => Promise.reject(new AtollError('not_found', 'none')) };
  const failed = await serveCall(failing, requestOf(streamType, encodeMessage({})));
  expect([failed.status, await envelopesOf(failed)]).toEqual([
    200,
    [[2, { error: { code: 'not_found', message: 'none' } }]],
  ]);
});

test('a client that leaves before its stream begins abandons it', async () => {
  const client = new AbortController();
  let closed = 0;
  const method: Method = { kind: 'server-stream', open: (_, __, outbox) => void (outbox.onClose = () => closed++) };
  const response = await serveCall(method, requestOf(streamType, encodeMessage({}), {}, client.signal));
  expect(closed).toBe(0);
  client.abort();
  expect(closed).toBe(1);
  expect(await Array.fromAsync(readMessages(response.body?.pipeThrough(ended()) ?? null, 10))).toEqual([]);
});

/** The body of an abandoned stream has no end of its own. */
const ended = () => new TransformStream<Uint8Array, Uint8Array>({ start: controller => controller.terminate() });
