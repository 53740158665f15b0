import { askSocks } from '../../../src/node/network/egress/proxy/socks.ts';
import type { ChannelUser, SocketChannel } from '../../../src/node/network/egress/proxy/channel.ts';
import { Gathered } from '../../../src/node/network/egress/proxy/gathered.ts';
import { composeRequest, readRequest } from '../../../src/node/network/egress/proxy/http/request.ts';
import { readResponse } from '../../../src/node/network/egress/proxy/http/response.ts';
import { resultOrCode } from '../engine/errors.ts';
import { cutIntoPieces } from '../engine/pieces.ts';
import type { Random } from '../engine/random.ts';
import { agree, holds, type Target } from '../engine/target.ts';
import { requestHeads, responseHeads } from './http-heads.ts';

/** The relay's result for bytes that arrive in pieces. */
function inPieces<T>(input: Buffer, random: Random, read: (bytes: Buffer, searched: number) => T): T | 'incomplete' {
  const have = new Gathered();
  let searched = 0;
  for (const piece of cutIntoPieces(input, random)) {
    have.append(Buffer.from(piece));
    const parsed = read(have.bytes, searched);
    searched = have.length;
    if (parsed !== 'incomplete') return parsed;
  }
  return 'incomplete';
}

const hostPumps = [
  { prefix: 'GET / HTTP/1.1\r\nHost: a\r\nA: b', unit: ' ', suffix: 'c\r\n\r\n' },
  { prefix: 'GET / HTTP/1.1\r\nHost: a', unit: ' ', suffix: 'c\r\n\r\n' },
  { prefix: 'GET / HTTP/1.1\r\n', unit: 'A: b\r\n', suffix: '\r\n' },
  { prefix: 'GET / HTTP/1.1\r\nConnection: a', unit: ', a', suffix: '\r\n\r\n' },
  { prefix: 'GET http://', unit: 'a', suffix: ' HTTP/1.1\r\n\r\n' },
  { prefix: 'GET http://a', unit: '/', suffix: ' HTTP/1.1\r\n\r\n' },
  { prefix: 'GET / HTTP/1.1\r\nHost: ', unit: '[', suffix: '\r\n\r\n' },
  { prefix: '', unit: ' ', suffix: '\r\n\r\n' },
];

export const relayedRequests: Target = {
  ...requestHeads,
  name: 'relayed-requests',
  dictionary: [
    ...(requestHeads.dictionary ?? []),
    'http://b.example:8080/',
    'Upgrade: websocket',
    'Connection: upgrade',
    'Proxy-Authorization: x',
    ':0',
    ':80',
  ],
  pumps: hostPumps,
  work(input) {
    const request = readRequest(input);
    if (typeof request === 'object' && !('refused' in request))
      composeRequest(request, 'b.example', { 'X-Token': 'secret' });
  },
  check(input, random) {
    const request = readRequest(input);
    const cut = inPieces(input, random, readRequest);
    if (request === 'incomplete') return agree(cut, request, 'a request is the same in pieces') ?? request;
    if ('refused' in request) {
      // In pieces, a fault may show later, and no request results.
      holds(cut === 'incomplete' || 'refused' in cut, 'what is refused is not accepted in pieces');
      return `refused ${request.refused.slice(0, 60)}`;
    }
    agree(cut, request, 'a request is the same in pieces');
    const made = composeRequest(request, 'b.example', { 'X-Token': 'secret', 'Content-Length': '5' });
    const again = readRequest(made);
    if (again === 'incomplete' || 'refused' in again) {
      // As many fields as allowed, plus the added ones.
      holds(
        request.fields.length > 190 || made.length > 16_000,
        `the next parser accepts it: ${JSON.stringify(made.toString('latin1').slice(0, 200))}`,
      );
      return 'too long';
    }
    agree(again.length, made.length, 'the next parser sees one head');
    agree(
      [again.method, again.target, again.body, again.upgrade, again.host],
      [request.method, request.target, request.body, request.upgrade, 'b.example'],
      'the request is the same, for the host that was decided about',
    );
    holds(again.fields.filter(({ name }) => name.toLowerCase() === 'host').length === 1, 'there is one Host');
    agree(
      again.fields.filter(({ name }) => name.toLowerCase() === 'x-token').map(({ value }) => value),
      ['secret'],
      'a header that is set is there once',
    );
    return `accepted ${request.body.kind} ${request.upgrade} ${request.host !== undefined}`;
  },
};

export const relayedResponses: Target = {
  ...responseHeads,
  name: 'relayed-responses',
  pumps: hostPumps.map(pump => ({ ...pump, prefix: pump.prefix.replace('GET / HTTP/1.1', 'HTTP/1.1 200 OK') })),
  work: input => void readResponse(input, 'GET'),
  check(input, random) {
    const method = random.pick(['GET', 'HEAD']);
    const response = readResponse(input, method);
    const cut = inPieces(input, random, (bytes, searched) => readResponse(bytes, method, searched));
    if (response === 'invalid') {
      holds(typeof cut === 'string', 'what is invalid is not accepted in pieces');
      return response;
    }
    agree(cut, response, 'a response is the same in pieces');
    if (typeof response === 'string') return response;
    holds(
      response.status >= 100 && response.status <= 999 && Number.isSafeInteger(response.body.length),
      'a status and a length are numbers',
    );
    return `accepted ${response.body.kind}`;
  },
};

/** A channel whose other end sends the input in pieces, and then closes. */
function channelOf(pieces: readonly Buffer[]): { channel: SocketChannel; left: () => Buffer; written: Buffer[] } {
  let user: ChannelUser | undefined;
  const written: Buffer[] = [];
  let unread = Buffer.alloc(0);
  let [closed, released, at] = [false, false, 0];
  const channel = {
    get isClosed() {
      return closed;
    },
    use(next: ChannelUser) {
      user = next;
      queueMicrotask(function say() {
        const piece = pieces[at++];
        if (released || closed) {
          if (piece) unread = Buffer.concat([unread, piece]);
        } else if (piece) user?.data(Buffer.from(piece));
        else return user?.ended();
        if (at <= pieces.length) queueMicrotask(say);
      });
    },
    write: (bytes: Uint8Array) => written.push(Buffer.from(bytes)) > 0,
    abort: () => void (closed = true),
    unread(bytes: Buffer) {
      released = true;
      unread = Buffer.concat([unread, bytes]);
    },
  };
  return { channel: channel as unknown as SocketChannel, left: () => unread, written };
}

const target = { host: 'www.example.com', port: 443 };

export const socksAnswers: Target = {
  name: 'socks-answers',
  bytesMax: 600,
  corpus: [
    Buffer.of(5, 2, 1, 0, 5, 0, 0, 1, 1, 2, 3, 4, 0, 80, 22, 3),
    Buffer.of(5, 2, 1, 1),
    Buffer.of(5, 0xff),
    Buffer.concat([Buffer.of(5, 2, 1, 0, 5, 0, 0, 3, 3), Buffer.from('abc'), Buffer.of(0, 80)]),
    Buffer.concat([Buffer.of(5, 2, 1, 0, 5, 0, 0, 4), Buffer.alloc(18)]),
    Buffer.of(5, 2, 1, 0, 5, 9, 0, 1),
  ],
  dictionary: [Buffer.of(5, 0), Buffer.of(1, 0), Buffer.of(5, 0, 0, 3, 255)],
  async check(input, random) {
    const run = async (pieces: readonly Buffer[]) => {
      const { channel, left, written } = channelOf(pieces);
      const result = await resultOrCode(
        () => askSocks(channel, target, { address: 'a:1', username: 'u', password: 'p' }),
        ['unavailable'],
      ).catch((error: unknown) => {
        holds(
          error instanceof Error && error.message === 'the connection was closed',
          `an end is told as one: ${error}`,
        );
        return { code: 'closed' };
      });
      return { result, left: 'code' in result ? '' : left().toString('latin1'), said: written.length };
    };
    const whole = await run(input.length > 0 ? [input] : []);
    const cut = await run(cutIntoPieces(input, random));
    // Which pieces come after the answer depends on the connection: here all the rest, or part of it, was already read.
    agree({ ...cut, left: '' }, { ...whole, left: '' }, 'an answer is the same in pieces');
    return 'code' in whole.result ? String(whole.result.code) : `connected ${whole.left !== ''}`;
  },
};
