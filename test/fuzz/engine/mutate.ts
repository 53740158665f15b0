import type { Random } from './random.ts';

/** Numbers at which lengths and counters tend to go wrong. */
const boundaries = [
  0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 253, 254, 255, 256, 257, 511, 512, 1023, 1024, 4095, 4096, 4097,
  16_383, 16_384, 16_385, 32_767, 32_768, 65_535, 65_536, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
];
const textNumbers = [
  '0',
  '1',
  '-1',
  '00',
  '9007199254740991',
  '9007199254740992',
  '4294967296',
  '18446744073709551616',
  '1e9',
  '0x10',
  '+1',
  ' 1',
  '1.5',
  'NaN',
  'Infinity',
  '99999999999999999999',
];

type Mutation = (bytes: Buffer, random: Random, pool: Pool) => Buffer;

export type Pool = { inputs: readonly Buffer[]; words: readonly Buffer[] };

const position = (bytes: Buffer, random: Random) => random.below(bytes.length + 1);

function spliced(bytes: Buffer, at: number, removed: number, inserted: Uint8Array): Buffer {
  return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + removed)]);
}

function slice(bytes: Buffer, random: Random, lengthMax = 64): Buffer {
  const at = position(bytes, random);
  return bytes.subarray(at, at + random.below(lengthMax));
}

function boundaryNumber(random: Random): Buffer {
  const value = (random.pick(boundaries) + random.below(3) - 1) >>> 0;
  const number = Buffer.alloc(8);
  const width = random.pick([1, 2, 3, 4, 8]);
  if (random.once(2)) number.writeUInt32LE(value);
  else number.writeUIntBE(width < 4 ? value % 256 ** width : value, Math.max(width - 4, 0), Math.min(width, 4));
  return number.subarray(0, width);
}

const mutations: readonly Mutation[] = [
  (bytes, random) => spliced(bytes, position(bytes, random), 1, random.bytes(1)),
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    const at = random.below(Math.max(bytes.length, 1));
    if (at < copy.length) copy[at] = (copy[at] as number) ^ (1 << random.below(8));
    return copy;
  },
  (bytes, random) => spliced(bytes, position(bytes, random), 0, random.bytes(1 + random.below(4))),
  (bytes, random) =>
    spliced(bytes, position(bytes, random), 1 + random.below(random.pick([2, 8, 64])), Buffer.alloc(0)),
  (bytes, random, pool) => spliced(bytes, position(bytes, random), 0, random.pick(pool.words)),
  (bytes, random, pool) => {
    const word = random.pick(pool.words);
    return spliced(bytes, position(bytes, random), word.length, word);
  },
  (bytes, random) => {
    const number = boundaryNumber(random);
    return spliced(bytes, position(bytes, random), random.once(4) ? 0 : number.length, number);
  },
  (bytes, random) => replaceNumber(bytes, random),
  // Repeats a piece, here or elsewhere.
  (bytes, random) => spliced(bytes, position(bytes, random), 0, slice(bytes, random)),
  (bytes, random) => {
    const unit = slice(bytes, random, 8);
    return spliced(
      bytes,
      position(bytes, random),
      0,
      Buffer.concat(new Array<Buffer>(1 + random.below(40)).fill(unit)),
    );
  },
  (bytes, random, pool) =>
    spliced(bytes, position(bytes, random), random.below(16), slice(random.pick(pool.inputs), random)),
  (bytes, random, pool) => {
    const other = random.pick(pool.inputs);
    return Buffer.concat([bytes.subarray(0, position(bytes, random)), other.subarray(position(other, random))]);
  },
  (bytes, random) => bytes.subarray(0, position(bytes, random)),
];

/** Replaces the decimal number at some place. */
function replaceNumber(bytes: Buffer, random: Random): Buffer {
  const from = position(bytes, random);
  for (let at = from; at < bytes.length && at < from + 64; at++) {
    if (!isDigit(bytes[at])) continue;
    let end = at;
    while (end < bytes.length && isDigit(bytes[end])) end++;
    return spliced(bytes, at, end - at, Buffer.from(random.pick(textNumbers)));
  }
  return spliced(bytes, from, 0, Buffer.from(random.pick(textNumbers)));
}

const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 48 && byte <= 57;

/** An input with one or several changes, of at most `bytesMax` bytes. */
export function mutate(bytes: Buffer, random: Random, pool: Pool, bytesMax: number): Buffer {
  let changed = bytes;
  for (let left = 1 + random.below(random.pick([1, 2, 4, 8])); left > 0; left--)
    changed = random.pick(mutations)(changed, random, pool);
  return Buffer.from(changed.subarray(0, bytesMax));
}
