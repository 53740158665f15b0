import {
  clientHelloBytesMax,
  ClientHelloReader,
  looksLikeTls,
  parseClientHello,
} from '../../../src/node/network/egress/proxy/tls/client-hello.ts';
import { cutIntoPieces } from '../engine/pieces.ts';
import type { Random } from '../engine/random.ts';
import { agree, holds, type Target } from '../engine/target.ts';

function vector(sizeBytes: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const size = Buffer.alloc(sizeBytes);
  size.writeUIntBE(content.length, 0, sizeBytes);
  return Buffer.concat([size, content]);
}

const u16 = (value: number) => Buffer.of(value >> 8, value & 255);
const extension = (type: number, data: Uint8Array) => Buffer.concat([u16(type), vector(2, data)]);
const serverName = (name: string, type = 0) =>
  extension(0, vector(2, Buffer.of(type), vector(2, Buffer.from(name, 'latin1'))));

function hello(extensions: Uint8Array[], recordBytes: number): Buffer {
  const body = Buffer.concat([
    u16(0x0303),
    Buffer.alloc(32, 7),
    vector(1, Buffer.alloc(32, 1)),
    vector(2, u16(0x1301), u16(0x1302)),
    vector(1, Buffer.of(0)),
    vector(2, ...extensions),
  ]);
  const message = Buffer.concat([Buffer.of(1), vector(3, body)]);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += recordBytes)
    records.push(Buffer.concat([Buffer.of(22, 3, 1), vector(2, message.subarray(at, at + recordBytes))]));
  return Buffer.concat(records);
}

function anyHello(random: Random): Buffer {
  const extensions = Array.from({ length: random.below(5) }, () =>
    random.pick([
      serverName('www.example.com'),
      serverName(random.pick(['', '1.2.3.4', 'A.EXAMPLE.', 'a'.repeat(300), 'x\0y'])),
      serverName('a', 1),
      extension(0xfe0d, random.bytes(9)),
      extension(random.below(60), random.bytes(random.below(9))),
    ]),
  );
  return hello(extensions, random.pick([1, 7, 100, 16_384]));
}

export const clientHellos: Target = {
  name: 'client-hellos',
  corpus: [
    hello([serverName('www.example.com'), extension(43, Buffer.of(2, 3, 4))], 16_384),
    hello([serverName('a.example')], 3),
    hello([extension(0xfe0d, Buffer.alloc(10))], 50),
    hello([], 16_384),
  ],
  dictionary: [Buffer.of(22, 3, 1), serverName('b.example'), u16(0xfe0d), Buffer.of(0, 0), Buffer.of(0x40, 0)],
  generate: anyHello,
  pumps: [
    { prefix: '', unit: '\x16\x03\x01\0\x01\x01', suffix: '' },
    { prefix: '\x16\x03\x01\0\x04\x01\0\x7f\xff', unit: '\x16\x03\x01\0\x01a', suffix: '' },
    { prefix: '\x16\x03\x01\0\x01\x01\x16\x03\x01\0\x03\0\x40\0', unit: '\x16\x03\x01\0\x01a', suffix: '' },
  ],
  work: input => parseClientHello(input),
  check(input, random) {
    const whole = parseClientHello(input);
    const reader = new ClientHelloReader();
    let inPieces: ReturnType<typeof parseClientHello> = 'incomplete';
    for (const piece of cutIntoPieces(input, random)) if (inPieces === 'incomplete') inPieces = reader.push(piece);
    agree(inPieces, whole, 'a hello is the same in pieces');
    // Each beginning either needs more or gives the same result as the whole.
    for (let end = 0; end < input.length; end += 1 + Math.floor(input.length / 40)) {
      const part = parseClientHello(input.subarray(0, end));
      if (part === 'incomplete') continue;
      agree(part, whole, 'what is decided about a beginning is decided');
      break;
    }
    if (typeof whole === 'string') return whole;
    holds(
      looksLikeTls(input) && input.length <= 2 * clientHelloBytesMax + 5 * clientHelloBytesMax,
      'what is read looks like TLS',
    );
    holds(
      whole.serverName === undefined || /^[a-z0-9_.-]{1,253}$/.test(whole.serverName),
      'a name is one that rules can be compared with',
    );
    return `hello ${whole.serverName !== undefined} ${whole.encrypted}`;
  },
};
