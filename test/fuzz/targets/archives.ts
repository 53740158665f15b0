import { ftruncateSync, openSync, readSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { decompress } from '../../../src/builder/archive/decompress.ts';
import { readTar } from '../../../src/builder/archive/tar.ts';
import { writeTar } from '../../../src/base/write-tar.ts';
import type { Attributes, DirectoryNode, TreeNode } from '../../../src/builder/erofs/tree.ts';
import { createImageWriter } from '../../../src/builder/erofs/writer.ts';
import { importLayer } from '../../../src/builder/layer/import-layer.ts';
import { resultOrCode } from '../engine/errors.ts';
import { cutIntoPieces, iterate } from '../engine/pieces.ts';
import type { Random } from '../engine/random.ts';
import { define, readErofs, type Shown } from '../engine/read-erofs.ts';
import { agree, holds, type Target } from '../engine/target.ts';

const attributes = { mode: 0o644, uid: 0, gid: 0 };
const blockSize = 512;

/** One entry of any type with a correct checksum: mutations of the rest should get past its check. */
function entry(
  path: string,
  { flag = '0', content = '', target = '' }: { flag?: string; content?: string; target?: string } = {},
): Buffer {
  const bytes = Buffer.from(
    writeTar([{ path, type: 'file', attributes, content: Buffer.from(content, 'latin1'), target }]),
  ).subarray(0, blockSize * (1 + Math.ceil(content.length / blockSize)));
  bytes.write(flag, 156);
  return summed(bytes);
}

/** Corrects every header's checksum, as far as sizes lead from one to the next. */
function summed(bytes: Buffer): Buffer {
  for (let at = 0; at + blockSize <= bytes.length;) {
    const header = bytes.subarray(at, at + blockSize);
    if (header.some(byte => byte !== 0)) {
      header.fill(' ', 148, 156);
      header.write(
        header
          .reduce((sum, byte) => sum + byte, 0)
          .toString(8)
          .padStart(6, '0'),
        148,
      );
    }
    const size = Number.parseInt(header.toString('latin1', 124, 136), 8) || 0;
    at += blockSize * (1 + Math.ceil(Math.min(size, bytes.length) / blockSize));
  }
  return bytes;
}

const pax = (records: Record<string, string>) =>
  Object.entries(records)
    .map(([key, value]) => {
      const rest = ` ${key}=${value}\n`;
      let length = rest.length + 1;
      while (String(length).length + rest.length !== length) length++;
      return `${length}${rest}`;
    })
    .join('');

function archive(random: Random): Buffer {
  const names = [
    'a',
    'b',
    'd/',
    'd/a',
    'd/e/f',
    './a',
    '/a',
    '../a',
    'l/x',
    '.wh.a',
    'd/.wh..wh..opq',
    '.wh..wh.plnk',
    '__proto__',
    'x'.repeat(99),
    'd',
    '\xff\xfe',
    'a/b',
  ];
  const values = {
    path: ['p', 'd/p', 'x/'.repeat(300)],
    linkpath: ['a', '/d'],
    size: ['0', '5', '-1', '1e3', 'x'],
    mtime: ['1.5', '-1', '1e999', 'NaN', '9'.repeat(30)],
    uid: ['0', '70000', 'x'],
    'SCHILY.xattr.user.a': ['v', 'x'.repeat(2000)],
    'SCHILY.xattr.security.capability': ['\0\x01'],
    'GNU.sparse.major': ['1'],
  };
  const parts = Array.from({ length: random.below(6) }, () => {
    const kind = random.pick(['0', '0', '0', '1', '2', '5', '5', '6', '3', 'x', 'g', 'L', 'K', '7', 'S', 'Z', '\0']);
    if (kind === 'x' || kind === 'g') {
      const key = random.pick(Object.keys(values)) as keyof typeof values;
      return entry('pax', { flag: kind, content: pax({ [key]: random.pick(values[key]) }) });
    }
    if (kind === 'L' || kind === 'K') return entry('long', { flag: kind, content: `${random.pick(names)}\0` });
    return entry(random.pick(names), {
      flag: kind,
      target: random.pick(names),
      content:
        '012'.includes(kind) && random.once(2)
          ? random.bytes(random.pick([1, 5, 511, 512, 513, 2048, 4100])).toString('latin1')
          : '',
    });
  });
  return Buffer.concat([...parts, Buffer.alloc(random.once(3) ? 0 : 1024)]);
}

const corpus = [
  Buffer.concat([
    entry('a', { content: 'hello' }),
    entry('d/', { flag: '5' }),
    entry('d/l', { flag: '2', target: '../a' }),
    entry('h', { flag: '1', target: 'a' }),
    Buffer.alloc(1024),
  ]),
  Buffer.concat([
    entry('x', { flag: 'x', content: pax({ path: 'long/name', mtime: '1.5', 'SCHILY.xattr.user.a': 'v' }) }),
    entry('a', { content: 'b' }),
  ]),
  Buffer.concat([
    entry('L', { flag: 'L', content: 'very-long\0' }),
    entry('a'),
    entry('.wh.gone'),
    entry('d/.wh..wh..opq'),
    entry('p', { flag: '6' }),
  ]),
];
const dictionary = [
  'ustar\x0000',
  '0000005',
  'SCHILY.xattr.user.',
  'mtime=',
  'size=',
  'path=',
  '12 ',
  '.wh.',
  '../',
  '0'.repeat(20),
  '\x80\0\0\0\0\0\0\0\0\0\x02',
];

/** The files of a target, read whole, or the code of the error. */
const list = (pieces: readonly Uint8Array[]) =>
  resultOrCode(async () => {
    const entries: unknown[] = [];
    for await (const found of readTar(iterate(pieces))) {
      const { content, ...facts } = found;
      const data: Buffer[] = [];
      if (found.path.length % 3 !== 0) await content(part => void data.push(Buffer.from(part)));
      entries.push({ ...facts, data: Buffer.concat(data).toString('latin1') });
    }
    return entries;
  }, ['invalid']);

const paxPump = (prefix: string, unit: string, suffix: string) => ({ prefix, unit, suffix });

export const tarArchives: Target = {
  name: 'tar-archives',
  bytesMax: 8192,
  corpus,
  dictionary,
  generate: archive,
  pumps: [
    paxPump('', '0', '2 '),
    paxPump('', '0', '2 a=b\n'),
    paxPump('', '4 =\n', ''),
    paxPump('', '1', ''),
    paxPump('', ' ', ''),
    paxPump('', '3 \n', ''),
  ],
  // The content of a long header: the block before it contains its length.
  work: input => list([Buffer.concat([entry('x', { flag: 'x', content: input.toString('latin1') }), entry('a')])]),
  async check(input, random) {
    const bytes = random.once(4) ? input : summed(input);
    const whole = await list([bytes]);
    agree(await list(cutIntoPieces(bytes, random)), whole, 'the entries are the same in pieces');
    return 'code' in whole ? whole.code : `${Math.min(whole.value.length, 4)} entries`;
  },
};

const scratch = openScratch();

/** A file without a name, which each run writes anew. */
function openScratch(): number {
  const path = join(tmpdir(), `atoll-fuzz-${process.pid}-${crypto.randomUUID()}`);
  const fd = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return fd;
}

function readScratch(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length;) {
    const count = readSync(scratch, bytes, at, length - at, at);
    holds(count > 0, 'the image is as long as it is said to be');
    at += count;
  }
  return bytes;
}

/** The tree as a reader must show it. The caller, who has the blocks, compares contents. */
function expected(node: TreeNode, plain: Map<TreeNode, unknown>): unknown {
  const known = plain.get(node);
  if (known) return known;
  const of = (attributes: Attributes, extra: object = {}) => ({
    mode: attributes.mode,
    uid: attributes.uid,
    gid: attributes.gid,
    mtime: [BigInt(attributes.mtimeSeconds), attributes.mtimeNanoseconds],
    xattrs: Object.fromEntries(
      [...attributes.xattrs].map(([name, value]) => [name, Buffer.from(value).toString('latin1')]),
    ),
    ...extra,
  });
  const shown: Record<string, unknown> = { kind: node.kind };
  plain.set(node, shown);
  if (node.kind === 'whiteout') return Object.assign(shown, { mode: 0, uid: 0, gid: 0, mtime: [0n, 0], xattrs: {} });
  if (node.kind === 'symlink') return Object.assign(shown, of(node.attributes), { data: node.target });
  if (node.kind === 'fifo') return Object.assign(shown, of(node.attributes));
  if (node.kind === 'file') return Object.assign(shown, of(node.attributes), { size: node.data.size });
  const entries: Record<string, unknown> = {};
  for (const [name, child] of [...node.entries].sort(([a], [b]) => (a < b ? -1 : 1)))
    define(entries, name, expected(child, plain));
  const opaque = node.opaque ? { 'trusted.overlay.opaque': 'y' } : {};
  const own = of(node.attributes);
  return Object.assign(shown, own, { xattrs: { ...own.xattrs, ...opaque }, entries });
}

function compared(shown: Shown, seen = new Map<Shown, unknown>()): unknown {
  const known = seen.get(shown);
  if (known) return known;
  const { kind, mode, uid, gid, mtime, xattrs, data, entries } = shown;
  const plain: Record<string, unknown> = { kind };
  seen.set(shown, plain);
  Object.assign(plain, { mode, uid, gid, mtime, xattrs });
  if (kind === 'symlink') plain['data'] = data;
  if (kind === 'file') plain['size'] = data.length;
  if (kind === 'directory') {
    const below: Record<string, unknown> = {};
    for (const [name, child] of Object.entries(entries)) define(below, name, compared(child, seen));
    plain['entries'] = below;
  }
  return plain;
}

const limits = { bytesMax: 8 << 20, inodesMax: 2000 };

const written = (pieces: readonly Uint8Array[]) =>
  resultOrCode(async (): Promise<{ root: DirectoryNode; image: Buffer }> => {
    ftruncateSync(scratch, 0);
    const writer = createImageWriter(scratch, limits);
    const root = await importLayer(readTar(iterate(pieces)), writer);
    return { root, image: readScratch(writer.finish(root).bytes) };
  }, ['invalid', 'no_space']);

/** From a stranger's archive to an image, and back through a reader that was written independently. */
export const layerImages: Target = {
  name: 'layer-images',
  bytesMax: 16_384,
  corpus: [
    ...corpus,
    Buffer.concat([
      entry('l', { flag: '2', target: 'd' }),
      entry('d/', { flag: '5' }),
      entry('l/x', { content: 'y'.repeat(4097) }),
    ]),
  ],
  dictionary,
  generate: archive,
  pumps: [
    { prefix: '', unit: entry('d/'.repeat(40)).toString('latin1'), suffix: '' },
    {
      prefix: Buffer.concat([
        entry('K', { flag: 'K', content: `${'a/'.repeat(4000)}\0` }),
        entry('l', { flag: '2' }),
      ]).toString('latin1'),
      unit: entry('l/x').toString('latin1'),
      suffix: '',
    },
  ],
  work: input => written([input]),
  async check(input, random) {
    const bytes = random.once(8) ? input : summed(input);
    const made = await written([bytes]);
    if ('code' in made) return made.code;
    const { root, image } = made.value;
    agree(compared(readErofs(image)), expected(root, new Map()), 'the image shows what the archive holds');
    const again = await written(cutIntoPieces(bytes, random));
    holds('value' in again && again.value.image.equals(image), 'the image is the same in pieces');
    return `image of ${Math.min(root.entries.size, 4)}`;
  },
};

/** The content, and whether it ended in order. */
async function opened(pieces: readonly Uint8Array[]): Promise<{ content: Buffer; whole: boolean }> {
  const parts: Uint8Array[] = [];
  try {
    for await (const part of decompress(iterate(pieces))) parts.push(part);
  } catch (error) {
    holds(error instanceof Error, 'what is broken is told by an error');
    return { content: Buffer.concat(parts), whole: false };
  }
  return { content: Buffer.concat(parts), whole: true };
}

export const compressedArchives: Target = {
  name: 'compressed-archives',
  bytesMax: 1024,
  corpus: [
    gzipSync('hello'),
    Bun.zstdCompressSync('hello'),
    'plain',
    '',
    Buffer.of(0x1f),
    Buffer.concat([gzipSync('a'), gzipSync('b')]),
    Buffer.concat([Bun.zstdCompressSync('a'), Bun.zstdCompressSync('b')]),
  ],
  dictionary: [Buffer.of(0x1f, 0x8b, 8), Buffer.of(0x28, 0xb5, 0x2f, 0xfd)],
  generate: random =>
    random.once(2) ? gzipSync(random.bytes(random.below(99))) : Bun.zstdCompressSync(random.bytes(random.below(99))),
  workBytesMax: 16 << 10,
  async check(input, random) {
    const whole = await opened([input]);
    const cut = await opened(cutIntoPieces(input, random));
    // Whether bytes behind the end are an error depends on how they arrive, in every zstd stream; the content before
    // them does not.
    if (whole.whole && cut.whole) agree(cut.content, whole.content, 'the content is the same in pieces');
    else
      holds(
        [whole.content, cut.content].some((one, index, both) => both[1 - index]?.subarray(0, one.length).equals(one)),
        'what came before the fault is the same in pieces',
      );
    return `${whole.whole ? 'whole' : 'broken'} ${whole.content.length === 0} ${whole.content.equals(input)}`;
  },
};
