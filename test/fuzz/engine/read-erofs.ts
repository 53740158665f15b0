import { blockSize, fileTypes, slotSize } from '../../../src/builder/erofs/format.ts';

// A reader of EROFS images by the kernel's documentation, written independently of the writer, so that a mistake passes
// only if both make it. Source: Documentation/filesystems/erofs.rst and fs/erofs/erofs_fs.h of Linux.

/** What an image says about one file, in plain values. Hard links have the same number. */
export type Shown = {
  kind: keyof typeof fileTypes;
  number: number;
  mode: number;
  uid: number;
  gid: number;
  mtime: [bigint, number];
  links: number;
  xattrs: Record<string, string>;
  /** Content of a file, target of a link. */
  data: string;
  entries: Record<string, Shown>;
};

const prefixes: Record<number, string> = {
  1: 'user.',
  2: 'system.posix_acl_access',
  3: 'system.posix_acl_default',
  4: 'trusted.',
  6: 'security.',
};

/** The tree of an image. Throws if a structure lies outside the image or contradicts itself. */
export function readErofs(image: Buffer): Shown {
  const superblock = image.subarray(1024, 1024 + 128);
  must(superblock.readUInt32LE(0) === 0xe0f5_e1e2, 'magic');
  must(
    1 << superblock.readUInt8(12) === blockSize && superblock.readUInt32LE(36) * blockSize === image.length,
    'block size and count',
  );
  const metaStart = superblock.readUInt32LE(40) * blockSize;
  const inodes = Number(superblock.readBigUInt64LE(16));
  const seen = new Map<number, Shown>();

  const show = (slot: number, depth: number): Shown => {
    const known = seen.get(slot);
    if (known) return known;
    must(seen.size < inodes && depth < 10_000, 'number of inodes');
    const at = metaStart + slot * slotSize;
    const head = slice(image, at, 64);
    const format = head.readUInt16LE(0);
    must((format & 1) === 1, 'extended inode');
    const layout = format >> 1;
    must(layout === 0 || layout === 2, 'layout');
    const count = head.readUInt16LE(2);
    const xattrsLength = count === 0 ? 0 : 12 + (count - 1) * 4;
    const mode = head.readUInt16LE(4);
    const size = Number(head.readBigUInt64LE(8));
    const found = Object.entries(fileTypes).find(([, { modeBits }]) => modeBits === (mode & 0o170000));
    must(found, 'type');
    const kind = found[0] as Shown['kind'];
    const shown: Shown = {
      kind,
      number: head.readUInt32LE(20),
      mode: mode & 0o7777,
      uid: head.readUInt32LE(24),
      gid: head.readUInt32LE(28),
      mtime: [head.readBigInt64LE(32), head.readUInt32LE(40)],
      links: head.readUInt32LE(44),
      xattrs: readXattrs(slice(image, at + 64, xattrsLength)),
      data: '',
      entries: {},
    };
    seen.set(slot, shown);
    const blocks = contentOf(layout, size, head.readUInt32LE(16), at + 64 + xattrsLength);
    if (kind === 'file' || kind === 'symlink') shown.data = Buffer.concat(blocks).toString('latin1');
    if (kind === 'directory')
      for (const [name, child] of blocks.flatMap(readEntries))
        if (name !== '.' && name !== '..') define(shown.entries, name, show(child, depth + 1));
    return shown;
  };

  const contentOf = (layout: number, size: number, firstBlock: number, inlineAt: number): Buffer[] => {
    const blocks: Buffer[] = [];
    for (let done = 0; done < size; done += blockSize) {
      const length = Math.min(blockSize, size - done);
      const inline = layout === 2 && length === size - done && size % blockSize !== 0;
      if (inline)
        must(
          Math.floor(inlineAt / blockSize) === Math.floor((inlineAt + length - 1) / blockSize),
          'inline data in one block',
        );
      blocks.push(slice(image, inline ? inlineAt : firstBlock * blockSize + done, length));
    }
    return blocks;
  };
  return show(superblock.readUInt16LE(14), 0);
}

function readEntries(block: Buffer): [name: string, slot: number][] {
  const count = block.readUInt16LE(8) / 12;
  must(Number.isInteger(count) && count > 0, 'entries of a block');
  let before: string | undefined;
  return Array.from({ length: count }, (_, index) => {
    const start = block.readUInt16LE(index * 12 + 8);
    const end = index + 1 < count ? block.readUInt16LE((index + 1) * 12 + 8) : block.length;
    const name = slice(block, start, end - start).toString('latin1');
    must(
      name !== '' && name.length <= 255 && !name.includes('\0') && (before === undefined || before < name),
      'names in order',
    );
    before = name;
    return [name, Number(block.readBigUInt64LE(index * 12))];
  });
}

function readXattrs(bytes: Buffer): Record<string, string> {
  const xattrs: Record<string, string> = {};
  for (let at = 12; at < bytes.length;) {
    const [nameLength, index, valueLength] = [bytes.readUInt8(at), bytes.readUInt8(at + 1), bytes.readUInt16LE(at + 2)];
    const prefix = prefixes[index];
    must(prefix !== undefined, 'prefix of an attribute');
    define(
      xattrs,
      prefix + slice(bytes, at + 4, nameLength).toString('latin1'),
      slice(bytes, at + 4 + nameLength, valueLength).toString('latin1'),
    );
    at += Math.ceil((4 + nameLength + valueLength) / 4) * 4;
  }
  return xattrs;
}

/** As an own property: names in an image may be `__proto__`. */
export function define<T>(record: Record<string, T>, name: string, value: T): void {
  must(!Object.hasOwn(record, name), 'names are there once');
  Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true });
}

function slice(bytes: Buffer, start: number, length: number): Buffer {
  must(start >= 0 && length >= 0 && start + length <= bytes.length, 'inside of the image');
  return bytes.subarray(start, start + length);
}

function must(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`the image is wrong: ${what}`);
}
