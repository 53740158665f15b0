import { EventEmitter } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { expect, test } from 'bun:test';
import { BodyBytes } from './body-bytes.ts';
import type { RequestBytes } from './request-bytes.ts';
import { StreamSocket } from './stream-socket.ts';

/** A stream whose client is the test: what was sent to it, and what was done to it. */
class FakeStream extends EventEmitter {
  readonly done: string[] = [];
  headers: unknown;
  options: unknown;
  body = '';
  trailers: unknown;
  writableNeedDrain = false;
  writableEnded = false;
  readableEnded = false;
  destroyedWith: unknown;
  fullAfter = Infinity;

  additionalHeaders = (headers: unknown) => void this.done.push(`interim ${JSON.stringify(headers)}`);
  respond(headers: Record<string, unknown>, options: unknown): void {
    if ('x-broken' in headers) throw new Error('HTTP/2 can not carry this');
    this.headers = { ...headers };
    this.options = options;
  }
  write(bytes: Buffer): boolean {
    this.body += bytes.toString('latin1');
    this.writableNeedDrain = this.body.length >= this.fullAfter;
    return !this.writableNeedDrain;
  }
  sendTrailers = (headers: Record<string, unknown>) => void (this.trailers = { ...headers });
  end(): void {
    this.done.push('end');
    this.writableEnded = true;
  }
  pause = () => void this.done.push('pause');
  resume = () => void this.done.push('resume');
  close = (code: number) => void this.done.push(`close ${code}`);
  destroy = (error: unknown) => void (this.destroyedWith = error);
}

type Body = RequestBytes['body'];
const limits = { headBytesMax: 4096, fieldsMax: 32, interimsMax: 4 };

function served(body: Body, { takesTrailers = false, toHead = false } = {}) {
  const stream = new FakeStream();
  const carrier = { remoteAddress: '192.0.2.7', carried: new BodyBytes(), isFull: false };
  const request: RequestBytes = { head: Buffer.from('HEAD'), body, isGrpc: false, takesTrailers };
  const socket = new StreamSocket(stream as unknown as ServerHttp2Stream, carrier, request, toHead, limits);
  const heard: string[] = [];
  socket.serve(
    {
      received: bytes => void heard.push(bytes.toString('latin1')),
      drained: () => void heard.push('(drained)'),
      halfClosed: () => void heard.push('(half closed)'),
      wasClosed: error => void heard.push(`(closed: ${error?.message ?? 'in order'})`),
    },
    request.head,
  );
  expect(heard.shift()).toBe('HEAD');
  const answers = (text: string) => socket.write(Buffer.from(text, 'latin1'));
  return { stream, carrier, socket, heard, answers };
}
const isReset = ({ stream, heard }: ReturnType<typeof served>) => {
  expect([stream.destroyedWith, heard.at(-1)]).toEqual([new Error('reset'), '(closed: in order)']);
};

test('a body of a known length passes as it comes, and not a byte more', () => {
  const at = served({ kind: 'length', length: 5 });
  at.stream.emit('data', Buffer.from('abc'));
  at.stream.emit('data', Buffer.from('de'));
  at.stream.emit('end');
  expect([at.heard, at.stream.destroyedWith]).toEqual([['abc', 'de'], undefined]);
  const beyond = served({ kind: 'length', length: 5 });
  beyond.stream.emit('data', Buffer.from('abcdef'));
  expect(beyond.heard).toEqual(['(closed: in order)']);
  isReset(beyond);
});

test('a body that ends before its length is broken off', () => {
  const at = served({ kind: 'length', length: 5 });
  at.stream.emit('data', Buffer.from('abcd'));
  at.stream.emit('end');
  isReset(at);
});

test('a body without a length becomes chunks, with the fields behind it that may be there', () => {
  const at = served({ kind: 'chunked' });
  at.stream.emit('data', Buffer.from('x'.repeat(17)));
  at.stream.emit('data', Buffer.alloc(0));
  at.stream.emit('trailers', { 'x-sum': '1', cookie: 'no' });
  at.stream.emit('end');
  expect(at.heard).toEqual([`11\r\n${'x'.repeat(17)}\r\n`, '0\r\nx-sum: 1\r\n\r\n']);
  const plain = served({ kind: 'chunked' });
  plain.stream.emit('end');
  expect(plain.heard).toEqual(['0\r\n\r\n']);
  const broken = served({ kind: 'chunked' });
  broken.stream.emit('trailers', { 'x-sum': 'a\r\nb' });
  broken.stream.emit('end');
  isReset(broken);
});

test('what comes through a tunnel passes as it is, and its end is half of the connection’s', () => {
  const at = served({ kind: 'tunnel' });
  at.stream.emit('data', Buffer.from('abc'));
  at.stream.emit('end');
  expect(at.heard).toEqual(['abc', '(half closed)']);
});

test('no body is awaited for a request without one', () => {
  const at = served({ kind: 'none' });
  expect(['data', 'end', 'trailers'].map(event => at.stream.listenerCount(event))).toEqual([0, 0, 0]);
});

test('a response becomes one of HTTP/2, and what the client still sends is of no use', () => {
  const at = served({ kind: 'length', length: 9 });
  const text = 'HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody';
  expect(at.answers(text)).toBe(text.length);
  expect(at.stream).toMatchObject({
    ...{ headers: { ':status': 200, 'content-length': '4' }, options: { endStream: false, waitForTrailers: false } },
    ...{ body: 'body', done: ['interim {":status":103,"link":"a"}', 'end'] },
  });
  expect([at.socket.isAnswered, at.socket.bytesWritten]).toEqual([true, text.length]);
  at.stream.emit('finish');
  expect(at.stream.done.at(-1)).toBe('close 0');
});

test('a client that has sent all is not told to stop', () => {
  for (const body of [{ kind: 'none' }, { kind: 'length', length: 0 }] as Body[]) {
    const at = served(body);
    at.stream.readableEnded = body.kind !== 'none';
    at.answers('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    at.stream.emit('finish');
    expect(at.stream.done).toEqual(['end']);
  }
});

test('a response without a body ends its stream by its head, and is not ended again', () => {
  const at = served({ kind: 'none' }, { toHead: true });
  at.stream.writableEnded = true;
  at.answers('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n');
  expect(at.stream).toMatchObject({ options: { endStream: true, waitForTrailers: false }, done: [] });
});

test('fields behind the body go to who takes them', () => {
  const text = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n';
  const at = served({ kind: 'none' }, { takesTrailers: true });
  at.answers(text);
  at.stream.emit('wantTrailers');
  expect(at.stream).toMatchObject({ body: 'a', options: { waitForTrailers: true }, trailers: { 'x-sum': '1' } });
  const other = served({ kind: 'none' });
  other.answers(text);
  other.stream.emit('wantTrailers');
  expect(other.stream).toMatchObject({ options: { waitForTrailers: false }, trailers: undefined });
});

test('a response that can not be read, or carried, is a reset', () => {
  const broken = served({ kind: 'none' });
  expect(broken.answers('SSH-2.0\r\n\r\n')).toBe(-1);
  isReset(broken);
  expect(broken.answers('HTTP/1.1 200 OK\r\n\r\n')).toBe(-1);
  const uncarried = served({ kind: 'none' });
  uncarried.answers('HTTP/1.1 200 OK\r\nX-Broken: 1\r\n\r\n');
  isReset(uncarried);
});

test('a response that was cut off is a reset, and a whole one is not', () => {
  const cut = served({ kind: 'none' });
  cut.answers('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbo');
  cut.socket.shutdown();
  isReset(cut);
  const whole = served({ kind: 'none' });
  whole.answers('HTTP/1.1 200 OK\r\n\r\nbody');
  whole.socket.close();
  expect([whole.stream.done, whole.stream.destroyedWith, whole.socket.isAnswered]).toEqual([['end'], undefined, true]);
});

test('bytes are taken while there is room in the stream and the connection, by pieces', () => {
  const at = served({ kind: 'none' });
  at.answers('HTTP/1.1 200 OK\r\n\r\n');
  at.stream.fullAfter = 70_000;
  const bytes = Buffer.alloc(200_000, 'a');
  bytes.fill('-', 0, 10);
  expect(at.socket.write(bytes, 10, 199_980)).toBe(131_072);
  expect([at.stream.body, at.answers('x')]).toEqual(['a'.repeat(131_072), 0]);
  at.stream.writableNeedDrain = false;
  at.carrier.isFull = true;
  expect(at.answers('x')).toBe(0);
  at.carrier.isFull = false;
  at.stream.body = '';
  expect([at.answers('x'), at.stream.body]).toEqual([1, 'x']);
});

test('the user hears that there is room again, from the stream and from the connection', () => {
  const at = served({ kind: 'none' });
  at.stream.emit('drain');
  at.socket.drained();
  expect(at.heard).toEqual(['(drained)', '(drained)']);
});

test('a stream is paused and resumed as a socket is, and speaks of its connection', () => {
  const at = served({ kind: 'none' });
  at.socket.pause();
  at.socket.resume();
  expect(at.stream.done).toEqual(['pause', 'resume']);
  at.carrier.carried.take(Buffer.from([0, 0, 3, 0, 0, 0, 0, 0, 1, 7, 7, 7]));
  expect([at.socket.remoteAddress, at.socket.bytesCarried]).toEqual(['192.0.2.7', 3]);
});

test('the user hears of the end once, and whether it was in order', () => {
  const ends: [(socket: StreamSocket) => void, boolean, string][] = [
    [socket => socket.wasClosed(), true, 'in order'],
    [socket => socket.wasClosed(), false, 'the stream was reset'],
    [socket => socket.lost(undefined), true, 'the connection was closed'],
    [socket => socket.lost(new Error('gone')), true, 'gone'],
    [socket => socket.terminate(), true, 'in order'],
  ];
  for (const [end, isAnswered, how] of ends) {
    const at = served({ kind: 'none' });
    if (isAnswered) at.answers('HTTP/1.1 204 No Content\r\n\r\n');
    end(at.socket);
    const { destroyedWith } = at.stream;
    at.socket.terminate();
    at.socket.lost(undefined);
    expect([at.heard, at.stream.destroyedWith]).toEqual([[`(closed: ${how})`], destroyedWith]);
  }
});
