import { expect, test } from 'bun:test';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { blockSize } from './format.ts';
import { defaultAttributes, newDirectory, type Attributes, type DirectoryNode, type TreeNode } from './tree.ts';
import { createImageWriter, type ImageWriter } from './writer.ts';

const limits = { bytesMax: 1 << 26, inodesMax: 10_000 };

/** The image of what `make` puts into an empty root, and the output of a script that runs on the mounted image. */
function imageOf(make: (writer: ImageWriter, root: DirectoryNode) => void, script = '', given = limits) {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-erofs-'));
  const image = join(dir, 'image');
  const fd = openSync(image, 'wx+');
  try {
    mkdirSync(join(dir, 'shown'));
    const writer = createImageWriter(fd, given);
    const root = newDirectory();
    make(writer, root);
    const made = writer.finish(root);
    expect(statSync(image).size).toBe(made.bytes);
    const digest = new Bun.CryptoHasher('sha256').update(readFileSync(image)).digest('hex');
    if (script === '') return { made, digest, shown: '' };
    const mounted = `mount -t erofs -o ro ${image} ${dir}/shown; cd ${dir}/shown; ${script}`;
    const { stdout, stderr, exitCode } = Bun.spawnSync(['unshare', '--mount', 'sh', '-ec', mounted]);
    expect([exitCode, stderr.toString()]).toEqual([0, '']);
    return { made, digest, shown: stdout.toString() };
  } finally {
    closeSync(fd);
    rmSync(dir, { recursive: true });
  }
}

function fileOf(writer: ImageWriter, content: Uint8Array, attributes: Attributes = defaultAttributes): TreeNode {
  const { write, end } = writer.beginFile(attributes);
  // In two parts, as they come.
  write(content.subarray(0, content.length / 2));
  write(content.subarray(content.length / 2));
  return { kind: 'file', attributes, data: end() };
}

const linesOf = (text: string) => text.split('\n').filter(line => line !== '');
const blocksOf = (image: { made: { bytes: number } }) => image.made.bytes / blockSize;

test('files of each size around a block are there with their content', () => {
  const sizes = [0, 1, 2047, 2048, 2049, 4032, 4033, 4095, 4096, 4097, 6144, 6145, 8192, (1 << 20) + 1, 3_000_001];
  const contents = sizes.map(size => [size, crypto.getRandomValues(Buffer.alloc(Math.min(size, 60_000)))] as const);
  const { shown, made } = imageOf((writer, root) => {
    for (const [size, part] of contents) root.entries.set(`f${size}`, fileOf(writer, Buffer.alloc(size, part)));
  }, 'sha256sum *');
  expect(made.inodes).toBe(sizes.length + 1);
  const digests = contents.map(
    ([size, part]) => `${new Bun.CryptoHasher('sha256').update(Buffer.alloc(size, part)).digest('hex')}  f${size}`,
  );
  expect(linesOf(shown).sort()).toEqual(digests.sort());
});

test('the last bytes of a file are behind its inode where they are few, and else have a block', () => {
  const withFile = (size: number, attributes = defaultAttributes) => {
    const make = (writer: ImageWriter, root: DirectoryNode) =>
      void root.entries.set('f', fileOf(writer, Buffer.alloc(size, 'x'), attributes));
    const image = imageOf(make, 'cat f');
    expect(image.shown).toBe('x'.repeat(size));
    return blocksOf(image);
  };
  // The superblock, and one block with all inodes.
  expect([withFile(0), withFile(2048), withFile(2049), withFile(4096)]).toEqual([2, 2, 3, 3]);
  expect([withFile(4096 + 2048), withFile(4096 + 2049)]).toEqual([3, 4]);
  // Attributes take the space: of the 4,096 bytes, the inode takes 64 and the attribute headers 16.
  const xattrs = new Map([['user.abcd', Buffer.alloc(4096 - 64 - 20 - 100)]]);
  const much = { ...defaultAttributes, xattrs };
  expect([withFile(100, much), withFile(101, much)]).toEqual([3, 4]);
});

test('owners, modes, times and extended attributes are those of the tree', () => {
  const attributes = {
    ...{ mode: 0o4751, uid: 70_000, gid: 34, mtimeSeconds: 2, mtimeNanoseconds: 123_456_789 },
    xattrs: new Map([
      ['user.b', Buffer.from('two')],
      ['user.a', Buffer.from('one')],
      ['trusted.c', Buffer.from('three')],
    ]),
  };
  const { shown } = imageOf((writer, root) => {
    root.attributes = { ...defaultAttributes, mode: 0o1700, mtimeSeconds: 5 };
    root.entries.set('f', fileOf(writer, Buffer.from('content'), attributes));
    root.entries.set('p', { kind: 'fifo', attributes: { ...defaultAttributes, mode: 0o600, mtimeSeconds: -2 } });
    root.entries.set('l', { kind: 'symlink', attributes: { ...defaultAttributes, mode: 0o777 }, target: 'to/f' });
  }, `find . -printf '%p %y %m %U %G %n %s %T@ %l\\n' | LC_ALL=C sort; cat f; echo; getfattr -d -m - f`);
  expect(linesOf(shown)).toEqual([
    '. d 1700 0 0 2 66 5.0000000000 ',
    './f f 4751 70000 34 1 7 2.1234567890 ',
    './l l 777 0 0 1 4 0.0000000000 to/f',
    './p p 600 0 0 1 0 -2.0000000000 ',
    'content',
    '# file: f',
    'trusted.c="three"',
    'user.a="one"',
    'user.b="two"',
  ]);
});

test('directories of any length are searched and listed, and count those in them as links', () => {
  const names = Array.from({ length: 900 }, (_, index) => `a-name-of-some-length-${index}`);
  const { shown, made } = imageOf(
    (writer, root) => {
      const many = newDirectory();
      for (const name of names) many.entries.set(name, fileOf(writer, Buffer.from(name)));
      for (const name of ['!', '.hidden', '..odd']) many.entries.set(name, newDirectory());
      root.entries.set('many', many);
      root.entries.set('empty', newDirectory());
    },
    `find . -type d -printf '%p %n\\n' | sort; cat many/*-0 many/*-899; echo; ls -A many | wc -l;
     stat -c %i many/../. many/!/.. . many`,
  );
  expect(made.inodes).toBe(906);
  const [root, below, , many] = linesOf(shown).slice(-4);
  expect(linesOf(shown).slice(0, -4).sort()).toEqual(
    ['. 4', './empty 2', './many 5', './many/! 2', './many/..odd 2', './many/.hidden 2']
      .concat(`${names[0]}${names[899]}`, '903')
      .sort(),
  );
  // Its own inode and that of the directory that holds it.
  expect([root, below]).toEqual([linesOf(shown).at(-2) ?? '', many ?? '']);
});

test('a file with two names is one inode, and links of all lengths lead on', () => {
  const targets = [1, 64, 4031, 4032, 4033, 4095].map(length => 'x'.repeat(length));
  const { shown, made } = imageOf((writer, root) => {
    const file = fileOf(writer, Buffer.from('same'));
    const other = newDirectory();
    other.entries.set('b', file);
    root.entries.set('a', file).set('other', other);
    for (const target of targets)
      root.entries.set(`l${target.length}`, { kind: 'symlink', attributes: defaultAttributes, target });
  }, `stat -c %h a other/b; [ a -ef other/b ] && echo same; for name in l*; do readlink $name | wc -c; done`);
  expect(made.inodes).toBe(3 + targets.length);
  expect(linesOf(shown)).toEqual(['2', '2', 'same', ...[2, 4032, 4033, 4034, 4096, 65].map(String)]);
});

test('entries that hide lower layers take the form that an overlay expects', () => {
  const { shown } = imageOf((_, root) => {
    root.entries.set('gone', { kind: 'whiteout' });
    const user = new Map([['user.kept', Buffer.from('1')]]);
    const attributes = { ...defaultAttributes, mode: 0o711, xattrs: user };
    root.entries.set('fresh', { ...newDirectory(attributes), opaque: true });
    root.entries.set('plain', newDirectory(attributes));
  }, `stat -c '%n %F %t %T %a' gone; getfattr -d -m - fresh; stat -c %a fresh; getfattr -d -m - plain`);
  expect(linesOf(shown)).toEqual([
    'gone character special file 0 0 0',
    '# file: fresh',
    'trusted.overlay.opaque="y"',
    'user.kept="1"',
    '711',
    '# file: plain',
    'user.kept="1"',
  ]);
});

test('an image has at most as many files and bytes as it may', () => {
  const full = (writer: ImageWriter, root: DirectoryNode) =>
    void root.entries.set('a', fileOf(writer, Buffer.alloc(4096, 1))).set('b', newDirectory());
  const exact = { inodesMax: 3, bytesMax: 3 * blockSize };
  expect(imageOf(full, '', exact).made).toEqual({ inodes: 3, bytes: 3 * blockSize });
  const error = (given: typeof limits) => {
    try {
      return imageOf(full, '', given).made;
    } catch (thrown) {
      return thrown;
    }
  };
  expect(error({ ...exact, inodesMax: 2 })).toMatchObject({
    code: 'no_space',
    message: 'the layer has more than 2 files',
  });
  expect(error({ ...exact, bytesMax: 3 * blockSize - 1 })).toMatchObject({ code: 'no_space' });
});

test('inline data lies in one block with its inode, up to the last byte', () => {
  const withLink = (length: number) => {
    const link: TreeNode = { kind: 'symlink', attributes: defaultAttributes, target: 'x'.repeat(length) };
    return blocksOf(imageOf((_, root) => root.entries.set('l', link)));
  };
  // Before the link come 64 free bytes and 104 of the root, which end at 192.
  expect([withLink(4096 - 192 - 64), withLink(4096 - 192 - 63)]).toEqual([2, 3]);
  // The longest link shares a block with its inode; a longer one has blocks of its own.
  expect([withLink(4032), withLink(4033)]).toEqual([3, 3]);
});

test('equal trees make equal images, in whatever order they are filled', () => {
  const digest = (names: string[]) =>
    imageOf((_, root) => {
      for (const name of names) root.entries.set(name, newDirectory());
    }).digest;
  expect(digest(['b', 'c', 'a'])).toBe(digest(['a', 'b', 'c']));
  expect(digest(['a', 'b', 'd'])).not.toBe(digest(['a', 'b', 'c']));
});

test('a name that no directory can hold is refused: the kernel would take its rest for other entries', () => {
  const failure = (name: string) => {
    try {
      const holder = { ...newDirectory(), entries: new Map([[name, newDirectory()]]) };
      return imageOf((_, root) => root.entries.set('d', holder));
    } catch (error) {
      return error;
    }
  };
  // One entry has a block of its own, which its name fills: the next block would be read as what the name holds from
  // there on.
  const entry = Buffer.alloc(4096);
  entry.writeBigUInt64LE(2n);
  entry.writeUInt16LE(12, 8);
  entry.write('planted', 12);
  const planted = Buffer.concat([Buffer.alloc(4096 - 12, 'a'), entry]).toString('latin1');
  for (const name of [planted, 'x'.repeat(256), '', '.', '..', 'a/b', 'a\0b'])
    expect(failure(name)).toMatchObject({ code: 'invalid' });
  expect(failure('x'.repeat(255))).toMatchObject({ made: { inodes: 3 } });
});
