import { gzipSync } from 'node:zlib';
import { gunzip, gzip } from '../../../src/agent/files/gzip.ts';
import { boundaryOf, readParts } from '../../../src/agent/files/multipart.ts';
import { negotiateCoding } from '../../../src/agent/files/negotiate.ts';
import { readRange } from '../../../src/agent/files/range.ts';
import { sniffType, typeByName } from '../../../src/agent/files/content-type.ts';
import { resultOrCode, valueOrCode } from '../engine/errors.ts';
import { cutIntoPieces, iterate, streamOf } from '../engine/pieces.ts';
import { agree, holds, type Target } from '../engine/target.ts';

const boundary = 'XyZ';

type Part = { name: string | undefined; filename: string | undefined; data: string };

async function parts(pieces: readonly Uint8Array[]): Promise<Part[]> {
  const found: Part[] = [];
  let open = false;
  for await (const event of readParts(streamOf(pieces), boundary)) {
    if (event.kind === 'head') found.push({ ...event.head, data: '' });
    holds(open === (event.kind !== 'head'), 'bytes and an end belong to a part');
    open = event.kind !== 'end';
    const last = found.at(-1);
    if (event.kind === 'bytes' && last) last.data += Buffer.from(event.bytes).toString('latin1');
  }
  holds(!open, 'every part ends');
  return found;
}

const readWhole = (pieces: readonly Uint8Array[]) => resultOrCode(() => parts(pieces), ['invalid']);

export const multipartBodies: Target = {
  name: 'multipart-bodies',
  bytesMax: 20_000,
  corpus: [
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhello\r\n--${boundary}--\r\n`,
    `preamble\r\n--${boundary}  \r\n\r\n\r\n--${boundary}\r\ncontent-disposition: form-data; name=a; filename*=UTF-8''%e2%82%ac\r\n\r\n\r\n--${boundary}--epilogue`,
    `--${boundary}\r\nContent-Disposition: form-data; name="a\\"b"\r\n\r\n\r\n--Xy\r\n--${boundary}--`,
  ],
  dictionary: [
    `\r\n--${boundary}`,
    `--${boundary}--`,
    '\r\n\r\n',
    'filename=',
    "filename*=UTF-8''",
    '%zz',
    '\\"',
    'Content-Disposition:',
    '; name="',
    '--',
  ],
  pumps: [
    { prefix: `--${boundary}\r\ncontent-disposition: x; name="`, unit: '\\"', suffix: '' },
    { prefix: `--${boundary}\r\ncontent-disposition: x`, unit: '; name="a', suffix: `\r\n\r\n\r\n--${boundary}--` },
    { prefix: `--${boundary}\r\n\r\n`, unit: `\r\n--Xy`, suffix: `\r\n--${boundary}--` },
    { prefix: `--${boundary}\r\ncontent-disposition: ;`, unit: ' ', suffix: `\r\n\r\n\r\n--${boundary}--` },
    { prefix: `--${boundary}`, unit: ' ', suffix: `x\r\n\r\n` },
    { prefix: '', unit: `--${boundary}\r\n\r\n\r\n`, suffix: `--${boundary}--` },
  ],
  work: input => parts([input]),
  async check(input, random) {
    const whole = await readWhole([input]);
    agree(await readWhole(cutIntoPieces(input, random)), whole, 'the parts are the same in pieces');
    if ('code' in whole) return whole.code;
    holds(whole.value.reduce((sum, { data }) => sum + data.length, 0) <= input.length, 'no data is invented');
    return `${Math.min(whole.value.length, 3)} parts, ${whole.value.some(({ filename }) => filename !== undefined)}`;
  },
};

async function collected(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const found: Uint8Array[] = [];
  for await (const piece of stream) found.push(piece);
  return Buffer.concat(found);
}

export const gzipBodies: Target = {
  name: 'gzip-bodies',
  bytesMax: 1024,
  corpus: [
    gzipSync('hello'),
    gzipSync(''),
    Buffer.concat([gzipSync('a'), gzipSync('b')]),
    gzipSync(Buffer.alloc(100_000)).subarray(0, 60),
  ],
  dictionary: [Buffer.of(0x1f, 0x8b, 8), Buffer.alloc(8), gzipSync('x')],
  generate: random => gzipSync(random.bytes(random.below(200))),
  workBytesMax: 16 << 10,
  // Not collected: these inputs expand to a thousand times their length, and the cost of such memory varies.
  async work(input) {
    await gunzip(iterate([input])).pipeTo(new WritableStream());
  },
  async check(input, random) {
    const opened = async (pieces: readonly Uint8Array[]) =>
      await resultOrCode(() => collected(gunzip(iterate(pieces))), ['invalid']);
    const whole = await opened([input]);
    agree(await opened(cutIntoPieces(input, random)), whole, 'what is opened is the same in pieces');
    if (random.once(8))
      agree(
        await opened([await collected(gzip(iterate([input])))]),
        { value: input },
        'what is compressed is read as the same',
      );
    return 'code' in whole ? whole.code : `opened ${whole.value.length > 0}`;
  },
};

/** Headers of requests for files: content types, ranges, encodings, names. */
export const fileHeaders: Target = {
  name: 'file-headers',
  corpus: [
    'multipart/form-data; boundary=abc\nbytes=0-5\ngzip;q=0.5, identity;q=0\na.txt',
    'multipart/form-data; boundary="a\\"b"\nbytes=-5\n*;q=0\n/x/.y',
    'multipart/form-data\nbytes=5-\nx-gzip\nname.tar.gz',
  ],
  dictionary: [
    'boundary=',
    'bytes=',
    'gzip',
    'identity',
    '*',
    ';q=',
    '"',
    '\\',
    ', ',
    '-',
    '1e400',
    '99999999999999999999',
  ],
  pumps: [
    { prefix: 'a; boundary="', unit: '\\a', suffix: '\n\n\n' },
    { prefix: 'a', unit: '; ', suffix: '\n\n\n' },
    { prefix: 'a;', unit: ' ', suffix: '\n\n\n' },
    { prefix: 'x\nbytes=', unit: ' ', suffix: 'x\n\n' },
    { prefix: 'x\nbytes=1-1', unit: ' ', suffix: 'x\n\n' },
    { prefix: 'x\nx\n', unit: 'a;q=0,', suffix: '\n' },
    { prefix: 'x\nx\nx\n', unit: '.', suffix: '/' },
    { prefix: 'x\nx\nx\na', unit: 'a', suffix: '/' },
  ],
  check(input, random) {
    const [type = '', range = '', encoding = '', name = ''] = input.toString('latin1').split('\n');
    const named = valueOrCode(() => boundaryOf(type), ['invalid']);
    if ('value' in named)
      holds(named.value.length >= 1 && named.value.length <= 70, 'a boundary has a length that is allowed');
    const size = random.pick([0, 1, 5, 1000, 2 ** 40]);
    const found = readRange(range, size);
    if (typeof found === 'object')
      holds(found.start >= 0 && found.start < found.end && found.end <= size, 'a range is in the file');
    const coding = valueOrCode(() => negotiateCoding(encoding), ['not_acceptable']);
    if (!name.includes('\0')) typeByName(name);
    sniffType(input);
    return `${'value' in named} ${typeof found === 'object' ? 'range' : found} ${'code' in coding ? coding.code : coding.value.name}`;
  },
};
