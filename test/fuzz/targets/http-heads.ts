import { Fields, incomplete } from '../../../src/http1/fields.ts';
import { headMayBeWhole } from '../../../src/http1/head-end.ts';
import { headerId } from '../../../src/http1/known-headers.ts';
import { RequestHead } from '../../../src/http1/request-head.ts';
import { ResponseHead } from '../../../src/http1/response-head.ts';
import { defaultLimits } from '../../../src/edge/limits.ts';
import type { Random } from '../engine/random.ts';
import { agree, holds, type Target } from '../engine/target.ts';

const names = Object.keys(headerId) as (keyof typeof headerId)[];
const words = [
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/2.0',
  'Host: a',
  'Content-Length: ',
  'Transfer-Encoding: chunked',
  'chunked',
  'identity',
  ': ',
  '\r\n\r\n',
  '\r',
  '://',
  '*',
  'CONNECT',
  'X-Atoll-Owner: a',
  ...names,
];

/** A head of known headers with significant values. */
function head(startLine: string, random: Random): Buffer {
  const values = [
    '',
    '0',
    '1',
    '5',
    '05',
    '+5',
    '5,5',
    '18446744073709551616',
    'chunked',
    'Chunked',
    'chunked, chunked',
    'gzip, chunked',
    'identity',
    'close',
    'keep-alive, host',
    'upgrade',
    'a.example',
    '3000-abc.example',
    ' \t',
    'a\tb',
    '\x80\xff',
  ];
  const lines = Array.from(
    { length: random.below(7) },
    () => `${random.pick(names)}${random.once(20) ? ' ' : ''}:${random.once(2) ? ' ' : ''}${random.pick(values)}`,
  );
  return Buffer.from(
    `${[startLine, 'Host: a', ...lines].join('\r\n')}\r\n\r\n${random.once(3) ? 'body' : ''}`,
    'latin1',
  );
}

/** The final result of a parser that is given `bytes[0, end)`, more each time something arrives. */
function parsedInPieces(parse: (end: number) => number, bytes: Buffer, random: Random): number {
  let looked = 0;
  for (let end = 1; ;) {
    // As in the edge: a head that can't have become whole is not parsed again.
    if (headMayBeWhole(bytes.subarray(0, end), looked)) {
      const position = parse(end);
      if (position !== incomplete) return position;
    }
    if (end === bytes.length) return incomplete;
    looked = end;
    end = Math.min(bytes.length, end + 1 + random.below(random.pick([1, 3, 40])));
  }
}

/** The parsed fields, after checking that their places are in the bytes and in order. */
function fieldsOf(fields: Fields, bytes: Buffer, end: number): string[] {
  let before = 0;
  return Array.from({ length: fields.count }, (_, index) => {
    const [start, valueStart, valueEnd, lineEnd] = [
      fields.lineStart(index),
      fields.valueStart(index),
      fields.valueEnd(index),
      fields.lineEnd(index),
    ];
    holds(
      before <= start && start < valueStart && valueStart <= valueEnd && valueEnd < lineEnd && lineEnd <= end,
      'the places of a field are in order',
    );
    holds(bytes.toString('latin1', lineEnd - 2, lineEnd) === '\r\n', 'a line ends with CRLF');
    before = lineEnd;
    const value = fields.textAt(index);
    holds(!/[\r\n\0]/.test(value), 'a value holds no line end');
    return `${fields.nameAt(index)}:${value}`;
  });
}

const fieldsMax = defaultLimits.headerLinesMax;

export const requestHeads: Target = {
  name: 'request-heads',
  corpus: [
    'GET / HTTP/1.1\r\nHost: a.example\r\n\r\n',
    'POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello',
    'PUT http://a.example/x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'OPTIONS * HTTP/1.0\r\nE2b-Sandbox-Id: abc\r\nE2b-Sandbox-Port: 1\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n',
    '\r\n\r\nGET / HTTP/1.1\r\nhost:a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  ],
  dictionary: words,
  generate: random =>
    head(
      `${random.pick(['GET', 'POST', 'HEAD', 'PRI', 'CONNECT', 'G@T'])} ${random.pick(['/', '*', '/a b', 'http://a/x', '//a', 'http://', 'a://b', '/\xff'])} ${random.pick(['HTTP/1.1', 'HTTP/1.0', 'HTTP/1.2', 'http/1.1'])}`,
      random,
    ),
  pumps: [
    { prefix: 'GET / HTTP/1.1\r\nHost: a\r\nA: b', unit: ' ', suffix: 'c\r\n\r\n' },
    { prefix: '', unit: '\r\n', suffix: '' },
    { prefix: 'GET / HTTP/1.1\r\n', unit: 'A: b\r\n', suffix: '' },
  ],
  work: input => new RequestHead(fieldsMax).parse(input, 0, input.length),
  check(input, random) {
    const [whole, again] = [new RequestHead(fieldsMax), new RequestHead(fieldsMax)];
    const position = whole.parse(input, 0, input.length);
    const reached = input.length === 0 ? incomplete : parsedInPieces(end => again.parse(input, 0, end), input, random);
    if (position === incomplete)
      return agree(reached, incomplete, 'an incomplete head stays so in pieces') ?? 'incomplete';
    if (position < 0) {
      // In pieces, a fault may show only once the empty line is there, and no request results.
      holds(reached <= 0, 'what is malformed is not accepted in pieces');
      return `refused ${whole.fault.status} ${whole.fault.reason}`;
    }
    agree(reached, position, 'the head has the same end in pieces');
    agree(
      fieldsOf(again.fields, input, position),
      fieldsOf(whole.fields, input, position),
      'the fields are the same in pieces',
    );
    holds(
      position <= input.length && !whole.method.includes(' ') && !/[\0- ]/.test(whole.target),
      'method and target are words',
    );
    holds(whole.framing.length >= 0 && Number.isSafeInteger(whole.framing.length), 'a length is a number');
    holds(
      whole.fields.times('host') <= 1 && !(whole.fields.has('content-length') && whole.fields.has('transfer-encoding')),
      'framing has one meaning',
    );
    return `accepted ${whole.framing.kind} ${whole.minorVersion} ${whole.targetIsAbsolute}`;
  },
};

export const responseHeads: Target = {
  name: 'response-heads',
  corpus: [
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    'HTTP/1.0 404 \r\nConnection: close\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    'HTTP/1.1 204\r\nTransfer-Encoding: chunked\r\n\r\n',
  ],
  dictionary: [...words, '100', '204', '304', '999', '000'],
  generate: random =>
    head(
      `HTTP/1.${random.below(3)} ${random.pick(['200', '204', '304', '100', '1', '1000', '099'])}${random.pick([' OK', ' ', '', ' \x80'])}`,
      random,
    ),
  pumps: [
    { prefix: 'HTTP/1.1 200 ', unit: ' ', suffix: '\r\n\r\n' },
    { prefix: 'HTTP/1.1 200 OK\r\nA: b', unit: '\t', suffix: 'c\r\n\r\n' },
  ],
  work: input => new ResponseHead(fieldsMax).parse(input, 0, input.length),
  check(input, random) {
    const [whole, again] = [new ResponseHead(fieldsMax), new ResponseHead(fieldsMax)];
    const position = whole.parse(input, 0, input.length);
    const reached = input.length === 0 ? incomplete : parsedInPieces(end => again.parse(input, 0, end), input, random);
    if (position <= 0) {
      holds(reached <= 0, 'what is not accepted whole is not accepted in pieces');
      return position === incomplete ? 'incomplete' : `refused ${whole.fault}`;
    }
    agree(reached, position, 'the head has the same end in pieces');
    agree(
      fieldsOf(again.fields, input, position),
      fieldsOf(whole.fields, input, position),
      'the fields are the same in pieces',
    );
    holds(whole.status >= 100 && whole.status <= 999, 'a status has three digits');
    const framing = whole.framing(random.once(2));
    holds(framing === undefined || Number.isSafeInteger(framing.length), 'a length is a number');
    return `accepted ${framing?.kind} ${whole.minorVersion}`;
  },
};
