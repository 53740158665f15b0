import type { OutgoingHttpHeaders } from 'node:http2';
import { requestBytes } from '../../../src/edge/http2/request-bytes.ts';
import { http2Headers } from '../../../src/edge/http2/response-headers.ts';
import { ResponseReader } from '../../../src/http1/response-reader.ts';
import { BodyReader } from '../../../src/http1/body-reader.ts';
import { RequestHead } from '../../../src/http1/request-head.ts';
import { ResponseHead } from '../../../src/http1/response-head.ts';
import { defaultLimits } from '../../../src/edge/limits.ts';
import { cutIntoPieces } from '../engine/pieces.ts';
import { agree, holds, type Target } from '../engine/target.ts';

const separator = '\x01';

/** Headers as `node:http2` gives them, from lines of name and value; a repeated name gets a list. */
function headersOf(input: Buffer): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = { __proto__: null } as never;
  for (const line of input.toString('latin1').split('\n')) {
    const at = line.indexOf(separator);
    if (at < 0) continue;
    const [name, value] = [line.slice(0, at).toLowerCase(), line.slice(at + 1)];
    const before = headers[name];
    if (Array.isArray(before)) before.push(value);
    else headers[name] = before === undefined ? value : [before, value];
  }
  return headers;
}

const request = (lines: readonly [string, string][]) =>
  lines.map(([name, value]) => `${name}${separator}${value}`).join('\n');
const basic: readonly [string, string][] = [
  [':method', 'GET'],
  [':path', '/'],
  [':authority', 'a.example'],
  [':scheme', 'https'],
];

export const http2Requests: Target = {
  name: 'http2-requests',
  corpus: [
    request(basic),
    request([...basic, ['content-length', '5'], ['cookie', 'a=b'], ['cookie', 'c=d'], ['te', 'trailers']]),
    request([
      [':method', 'POST'],
      [':path', '*'],
      ['host', 'a'],
      ['x', 'é'],
    ]),
  ],
  dictionary: [
    ':method',
    ':path',
    ':authority',
    'transfer-encoding',
    'content-length',
    'connection',
    'host',
    separator,
    'chunked',
    'CONNECT',
    ':protocol',
    'websocket',
    'application/grpc',
    'te',
    'trailers',
    'HTTP/1.1',
    '\r\nA: b',
    'x-atoll-owner',
  ],
  check(input, random) {
    const headers = headersOf(input);
    const endsAtOnce = random.once(2);
    const made = requestBytes(headers, endsAtOnce);
    if (made === undefined) return 'refused';
    // The result must be one request for our own parser, with the intended framing.
    const head = new RequestHead(defaultLimits.headerLinesMax);
    const position = head.parse(made.head, 0, made.head.length);
    if (position < 0) return `refused by the parser ${head.fault.status}`;
    agree(position, made.head.length, 'one request is one head');
    const isTunnel = made.body.kind === 'tunnel';
    agree(head.method, isTunnel ? 'GET' : headers[':method'], 'the method is passed on');
    agree(head.target, headers[':path'], 'the target is passed on');
    agree(
      head.framing.kind,
      isTunnel || (made.body.kind === 'length' && made.body.length === 0) ? 'none' : made.body.kind,
      'the framing is what was meant',
    );
    const ofConnection = head.fields.times('connection') + head.fields.times('upgrade');
    agree(ofConnection, isTunnel ? 2 : 0, 'nothing speaks of the connection but a WebSocket');
    return `accepted ${made.body.kind}`;
  },
};

type Read = { interims: OutgoingHttpHeaders[]; head: OutgoingHttpHeaders | undefined; data: string; ends: number };

/** Whether the edge would send it: it has refused everything else before. */
function isWellFormed(input: Buffer, toHead: boolean): boolean {
  const head = new ResponseHead(defaultLimits.headerLinesMax);
  let at = head.parse(input, 0, input.length);
  while (at > 0 && head.status < 200) at = head.parse(input, at, input.length);
  const framing = at > 0 ? head.framing(toHead) : undefined;
  if (!framing) return false;
  const body = new BodyReader();
  body.reset(framing.kind, framing.length);
  return body.take(input, at, input.length) >= 0;
}

const limits = { headBytesMax: 1 << 20, fieldsMax: defaultLimits.headerLinesMax, interimsMax: 100_000 };

function read(pieces: readonly Buffer[], toHead: boolean): Read {
  const seen: Read = { interims: [], head: undefined, data: '', ends: 0 };
  const reader = new ResponseReader(
    {
      interim: head => void seen.interims.push(http2Headers(head)),
      head(head) {
        holds(seen.head === undefined, 'a response has one head');
        seen.head = http2Headers(head);
      },
      data: bytes => void (seen.data += Buffer.from(bytes).toString('latin1')),
      end: () => void seen.ends++,
    },
    limits,
    toHead ? 'head' : 'content',
  );
  for (const piece of pieces) reader.read(Buffer.from(piece));
  reader.close();
  return seen;
}

export const http2Responses: Target = {
  name: 'http2-responses',
  corpus: [
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    'HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    'HTTP/1.0 200 OK\r\nX: a\r\nX: b\r\n\r\nuntil the end',
  ],
  dictionary: ['HTTP/1.1 100 Continue\r\n\r\n', 'Content-Length: 0', '__proto__: a', 'constructor: a', 'Set-Cookie: x'],
  pumps: [
    { prefix: '', unit: 'HTTP/1.1 100 Continue\r\n\r\n', suffix: '' },
    { prefix: 'HTTP/1.1 200 OK\r\n', unit: 'Set-Cookie: a\r\n', suffix: '\r\n' },
  ],
  work: input => read([input], false),
  check(input, random) {
    const toHead = random.once(4);
    if (!isWellFormed(input, toHead)) return 'not the edge’s';
    const whole = read([input], toHead);
    agree(read(cutIntoPieces(input, random), toHead), whole, 'a response is the same in pieces');
    holds(whole.ends <= 1 && whole.data.length <= input.length, 'a response ends once');
    return `${whole.head?.[':status'] === undefined ? 'no' : 'a'} head, ${whole.ends} ends, ${Math.min(whole.interims.length, 2)} interim`;
  },
};
