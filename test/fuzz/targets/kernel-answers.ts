import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attribute, attributesIn, encode, messagesIn } from '../../../src/node/native/netlink.ts';
import { lookThrough, rewriteImage } from '../../../src/node/snapshot/images/image-file.ts';
import { closeOneEndedConnections } from '../../../src/node/snapshot/connections.ts';
import { looserMounts, mountSource, sandboxMounts } from '../../../src/node/snapshot/mounts.ts';
import {
  decodeFields,
  encodeFields,
  messageIn,
  numberIn,
  numbersIn,
  textIn,
  withMessages,
  withNumbers,
  type Field,
} from '../../../src/node/snapshot/images/protobuf.ts';
import { mapToHostIds } from '../../../src/node/snapshot/user-namespace.ts';
import { allowOtherSizes } from '../../../src/node/snapshot/volume-files.ts';
import { resultOrCode, valueOrCode } from '../engine/errors.ts';
import type { Random } from '../engine/random.ts';
import { agree, holds, type Target } from '../engine/target.ts';

export const netlinkAnswers: Target = {
  name: 'netlink-answers',
  corpus: [
    encode({ type: 2, flags: 0, body: Buffer.alloc(20) }, 7),
    Buffer.concat([
      encode(
        { type: 3, flags: 2, body: Buffer.concat([Buffer.alloc(4), attribute(1, [attribute(2, Buffer.from('abc'))])]) },
        1,
      ),
      encode({ type: 4, flags: 0, body: Buffer.alloc(0) }, 2),
    ]),
  ],
  dictionary: [
    Buffer.of(4, 0, 1, 0),
    Buffer.of(0, 0, 1, 0),
    Buffer.of(16, 0, 0, 0),
    Buffer.of(0xff, 0xff, 0xff, 0xff),
    Buffer.of(3, 0, 1, 0x80),
  ],
  pumps: [
    { prefix: '', unit: '\x10\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0', suffix: '' },
    { prefix: '', unit: '\x04\0\x01\0', suffix: '' },
    { prefix: '', unit: '\x05\0\x01\0a\0\0\0', suffix: '' },
  ],
  work: input => [[...messagesIn(input)], attributesIn(input)],
  check(input) {
    const messages = [...messagesIn(input)];
    holds(
      messages.reduce((sum, { body }) => sum + 16 + body.length, 0) <= input.length,
      'messages lie beside each other',
    );
    for (const { body } of messages) {
      for (const [type, value] of attributesIn(body)) {
        holds(type >= 0 && type < 0x4000 && value.length <= body.length, 'an attribute is inside of its message');
        attributesIn(value);
        agree(attributesIn(attribute(type, value)).get(type), value, 'what is written is read as the same');
      }
    }
    const again = Buffer.concat(
      messages.map(({ type, sequence, body }) =>
        Buffer.concat([encode({ type, flags: 0, body }, sequence), Buffer.alloc((4 - (body.length % 4)) % 4)]),
      ),
    );
    agree([...messagesIn(again)], messages, 'messages that are written are read as the same');
    return `${Math.min(messages.length, 3)} messages`;
  },
};

const varint = (value: bigint): number[] =>
  value > 127n ? [Number(value & 127n) | 128, ...varint(value >> 7n)] : [Number(value)];
const field = (number: number, value: bigint | Uint8Array | string) =>
  typeof value === 'bigint'
    ? Buffer.from([...varint(BigInt(number) << 3n), ...varint(value)])
    : Buffer.concat([
        Buffer.from([...varint((BigInt(number) << 3n) | 2n), ...varint(BigInt(value.length))]),
        Buffer.from(value),
      ]);

function message(random: Random, depth = 0): Buffer {
  return Buffer.concat(
    Array.from({ length: random.below(6) }, () => {
      const number = random.pick([1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 19, 536_870_911]);
      if (depth < 3 && random.once(3)) return field(number, message(random, depth + 1));
      return field(
        number,
        random.once(2)
          ? random.pick([0n, 1n, 6n, 80n, 0xffff0000n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n])
          : random.pick(['', '/vol/x', '/vol', random.bytes(5)]),
      );
    }),
  );
}

const socket = (local: number, peer: number) =>
  field(
    4,
    Buffer.concat([
      field(5, 6n),
      field(6, 1n),
      field(7, BigInt(local)),
      field(8, BigInt(peer)),
      field(11, 1n),
      field(12, 1n),
    ]),
  );

export const protobufMessages: Target = {
  name: 'protobuf-messages',
  corpus: [
    Buffer.concat([field(1, 5n), field(2, 'abc'), field(3, field(6, '/vol/a'))]),
    socket(80, 4000),
    Buffer.of(9, 1, 2, 3, 4, 5, 6, 7, 8, 21, 1, 2, 3, 4),
  ],
  dictionary: [
    Buffer.of(0x80),
    Buffer.alloc(10, 0xff),
    Buffer.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
    Buffer.of(0x0b),
    field(1, 1n),
  ],
  generate: random => message(random),
  pumps: [
    { prefix: '', unit: '\x80', suffix: '' },
    { prefix: '', unit: '\x08\x01', suffix: '' },
    { prefix: '', unit: '\x0a\0', suffix: '' },
  ],
  work: input => decodeFields(input),
  check(input) {
    const decoded = valueOrCode(() => decodeFields(input), ['internal']);
    if ('code' in decoded) return 'malformed';
    const fields = decoded.value;
    agree(decodeFields(encodeFields(fields)), fields, 'what is written is read as the same');
    for (const number of [1, 3, 6, 11]) {
      holds(
        typeof numberIn(fields, number) === 'number' &&
          typeof textIn(fields, number) === 'string' &&
          Array.isArray(numbersIn(fields, number)),
        'a field is what is asked for',
      );
      valueOrCode(() => messageIn(fields, number), ['internal']);
      valueOrCode(
        () => decodeFields(encodeFields(withMessages(fields, number, inner => withNumbers(inner, { 2: 7 })))),
        ['internal'],
      );
    }
    return `${Math.min(fields.length, 4)} fields`;
  },
};

function image(...entries: Buffer[]): Buffer {
  const parts = entries.map(entry => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(entry.length);
    return Buffer.concat([length, entry]);
  });
  return Buffer.concat([Buffer.alloc(8, 0x55), ...parts]);
}

async function read(path: string): Promise<Field[][]> {
  const entries: Field[][] = [];
  await lookThrough(path, entry => void entries.push(entry));
  return entries;
}

async function checkImage(folder: string, input: Buffer): Promise<string> {
  const [path, changed] = [join(folder, 'files.img'), join(folder, 'changed.img')];
  const start = () => writeFileSync(path, input);
  start();
  const entries = await resultOrCode(() => read(path), ['internal']);
  const works: (() => Promise<unknown>)[] = [
    () => closeOneEndedConnections(path),
    () => allowOtherSizes(path, ['/vol']),
    () => mapToHostIds(path, changed, 100_000),
  ];
  for (const work of works) {
    start();
    const result = await resultOrCode(work, ['internal']);
    if ('code' in entries) holds('code' in result, 'what can’t be read is not rewritten');
    else if ('value' in result) await read(path);
  }
  if ('code' in entries) return 'malformed';
  start();
  await rewriteImage(path, changed, same => [...same]);
  agree(await read(changed), entries.value, 'an image that is rewritten unchanged says the same');
  holds(readFileSync(changed).subarray(0, 8).equals(input.subarray(0, 8)), 'magic numbers stay');
  return `${Math.min(entries.value.length, 3)} entries`;
}

/** CRIU writes them, including names that a sandbox chose. */
export const checkpointImages: Target = {
  name: 'checkpoint-images',
  corpus: [
    image(socket(80, 4000), socket(4000, 80), socket(1, 2)),
    image(field(3, Buffer.concat([field(6, '/vol/x'), field(8, 5n)]))),
    image(field(1, field(2, 100_000n)), field(2, field(2, 1n))),
    image(),
  ],
  dictionary: [Buffer.alloc(4), Buffer.of(0xff, 0xff, 0xff, 0xff), field(3, field(6, '/vol/y'))],
  generate: random => image(...Array.from({ length: random.below(5) }, () => message(random))),
  work: input => decodeFields(input.subarray(12)),
  async check(input) {
    const folder = mkdtempSync(join(tmpdir(), 'atoll-fuzz-images-'));
    try {
      return await checkImage(folder, input);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
};

const sources = {
  agentDir: '/agent',
  ownFilesDir: '/own',
  cgroupPath: 'x',
  emptyDir: '/empty',
  sysDir: '/sys-of-ours',
  volumes: { '/vol': '/host/vol' },
};

export const mountTables: Target = {
  name: 'mount-tables',
  corpus: [
    '22 1 0:20 / / rw - overlay overlay rw\n23 22 0:21 / /proc rw,nosuid,nodev,noexec - proc proc rw\n24 22 8:1 /v /vol\\040a ro,nosuid shared:1 - ext4 /dev/loop0 ro\n',
    '25 22 0:5 / /sys/fs/cgroup ro - tmpfs tmpfs rw\n26 22 0:5 / /dev/null rw - devtmpfs x rw',
  ],
  dictionary: ['\\040', '\\134', '\\777', ' - ', 'ro', 'nosuid', '/sys/', '/proc/', '/dev/', '/vol'],
  pumps: [
    { prefix: '', unit: '1 2 3 / /a rw - x x x\n', suffix: '' },
    { prefix: '1 2 3 / ', unit: '\\040', suffix: ' rw - x x x' },
    { prefix: '', unit: ' ', suffix: '' },
    { prefix: '1 2 3 / /a ', unit: 'ro,', suffix: ' - x x x' },
  ],
  work: input => sandboxMounts(input.toString()),
  check(input) {
    const mounts = sandboxMounts(input.toString());
    holds(new Set(mounts.map(({ point }) => point)).size === mounts.length, 'a point is there once');
    agree(looserMounts(mounts, input.toString()), [], 'a table is not looser than itself');
    for (const { point } of mounts) valueOrCode(() => mountSource(point, sources), ['internal']);
    return `${Math.min(mounts.length, 3)} mounts, ${mounts.some(({ external }) => external)}`;
  },
};
