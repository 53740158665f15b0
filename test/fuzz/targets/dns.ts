import {
  addressAnswer,
  answerFor,
  answers,
  emptyAnswer,
  parseQuery,
  plainUdpBytesMax,
  readAnswer,
  responseCode,
  writeQuery,
  type Query,
} from '../../../src/node/network/egress/proxy/dns/message.ts';
import type { Random } from '../engine/random.ts';
import { agree, holds, type Target } from '../engine/target.ts';

const asked: Query = {
  id: 0x1234,
  name: 'www.example.com',
  type: 1,
  udpBytesMax: 1232,
  extended: true,
  wantsSignatures: true,
};
const pointer = Buffer.of(0xc0, 12);

function record(name: Uint8Array, type: number, data: Uint8Array): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(60, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([name, fixed, data]);
}

const labels = (...names: string[]) =>
  Buffer.concat([...names.map(name => Buffer.concat([Buffer.of(name.length), Buffer.from(name)])), Buffer.of(0)]);

function withRecords(...records: Buffer[]): Buffer {
  const answer = emptyAnswer(asked, responseCode.ok);
  answer.writeUInt16BE(records.length, 6);
  return Buffer.concat([answer, ...records]);
}

function anyAnswer(random: Random): Buffer {
  const names = [
    pointer,
    labels('www', 'example', 'com'),
    labels('a'),
    Buffer.of(0xc0, random.below(60)),
    Buffer.of(3, 0x77, 0x77, 0x77, 0xc0, 16),
    labels('x'.repeat(63), 'y'.repeat(63)),
  ];
  return withRecords(
    ...Array.from({ length: random.below(6) }, () =>
      record(random.pick(names), random.pick([1, 5, 28, 41]), random.once(2) ? random.bytes(4) : random.pick(names)),
    ),
  );
}

const corpus = [
  writeQuery(asked),
  writeQuery({ ...asked, extended: false }),
  writeQuery({ ...asked, name: '' }),
  addressAnswer(asked, ['192.0.2.1', '192.0.2.2'], 60),
  emptyAnswer(asked, responseCode.noSuchName),
  withRecords(record(pointer, 5, labels('a', 'example')), record(labels('a', 'example'), 1, Buffer.of(192, 0, 2, 3))),
];
const dictionary = [
  pointer,
  Buffer.of(0xc0, 0),
  labels('a'),
  labels('x'.repeat(63)),
  Buffer.of(0, 1, 0, 1),
  Buffer.of(0, 41),
  Buffer.of(0, 5),
  Buffer.of(0xff, 0xff),
];

/** A record of pointers, each to the one before it, and the place of the last. */
function jumps(count: number): { prefix: string; last: string } {
  const header = Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 1, 0, 1]);
  const start = header.length + 11;
  const chain = Buffer.alloc(2 + 2 * count);
  chain.writeUInt16BE(0, 0);
  for (let at = 0; at < count; at++) chain.writeUInt16BE(0xc000 | (start + 2 * at + (at === 0 ? 1 : 0)), 2 + 2 * at);
  const place = 0xc000 | (start + 2 * count);
  return {
    prefix: Buffer.concat([header, record(Buffer.of(0), 16, chain)]).toString('latin1'),
    last: String.fromCharCode(place >> 8, place & 255),
  };
}

const chain = jumps(4000);

/** Endless records, whose names are found through endless pointers. */
const pumps = [
  { prefix: '\x124\x01\0\0\x01\xff\xff\xff\xff\xff\xff\0\0\x01\0\x01', unit: '\0\0\x01\0\x01\0\0\0\0\0\0', suffix: '' },
  {
    prefix: '\x124\x01\0\0\x01\xff\xff\0\0\0\0\x01a\xc0\x0c\0\x01\0\x01',
    unit: '\xc0\x0c\0\x01\0\x01\0\0\0\0\0\0',
    suffix: '',
  },
  { prefix: chain.prefix, unit: `${chain.last}\0\x01\0\x01\0\0\0\0\0\0`, suffix: '' },
];

export const dnsQueries: Target = {
  name: 'dns-queries',
  corpus,
  dictionary,
  generate: anyAnswer,
  pumps,
  work: input => parseQuery(input),
  check(input) {
    const query = parseQuery(input);
    if (!query) return 'refused';
    holds(query.name.length <= 255 && query.udpBytesMax >= plainUdpBytesMax, 'a name is bounded');
    const { id, name, type, extended, wantsSignatures } = query;
    const again = parseQuery(writeQuery(query));
    agree(
      again && [again.id, again.name, again.type, again.extended, again.wantsSignatures],
      [id, name, type, extended, extended && wantsSignatures],
      'a query that is written anew asks the same',
    );
    holds(answers(emptyAnswer(query, responseCode.refused), query), 'an answer of ours answers the query');
    return `accepted ${extended} ${wantsSignatures} ${name === ''}`;
  },
};

export const dnsAnswers: Target = {
  name: 'dns-answers',
  corpus,
  dictionary,
  generate: anyAnswer,
  pumps: [
    ...pumps,
    {
      prefix: withRecords().toString('latin1').replace('\0\x01\0\0\0', '\0\x01\xff\xff\0'),
      unit: '\xc0\x0c\0\x05\0\x01\0\0\0\0\0\x02\xc0\x0c',
      suffix: '',
    },
  ],
  work: input => answers(input, asked) && readAnswer(input),
  check(input) {
    if (!answers(input, asked)) return 'no answer';
    const { addresses, ttlSeconds, code, truncated } = readAnswer(input);
    holds(
      addresses.every(address => /^\d{1,3}(\.\d{1,3}){3}$/.test(address)) && addresses.length * 4 <= input.length,
      'addresses are addresses',
    );
    holds(ttlSeconds >= 0 && (addresses.length === 0 || Number.isFinite(ttlSeconds)), 'a time to live is one');
    const relayed = answerFor({ ...asked, id: 7 }, input, 512);
    holds(
      relayed.length <= Math.max(512, emptyAnswer(asked, 0).length) && relayed.readUInt16BE(0) === 7,
      'what is relayed fits and has the client’s id',
    );
    return `answer ${code} ${truncated} ${Math.min(addresses.length, 2)}`;
  },
};
