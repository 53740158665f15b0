import { AtollError } from '../../base/error.ts';
import type { Attributes, ByteString } from './tree.ts';

/**
 * The on-disk structures of EROFS, version 1, uncompressed, as the kernel reads them (fs/erofs/erofs_fs.h):
 * little endian, blocks of 4 KiB, inodes in slots of 32 bytes from the block `metaBlock` on.
 */
export const blockSize = 4096;
/** Unit of inode numbers, bytes: an inode begins at a multiple of it. */
export const slotSize = 32;
/** We write only the extended form: the compact one has neither times nor IDs above 65535. */
export const inodeSize = 64;
const superblockOffset = 1024;
const superblockSize = 128;
const magic = 0xe0f5_e1e2;
const featureMtime = 2;

/** Layout of an inode's data: all in blocks, or in blocks with the last part right behind the inode. */
export const dataLayout = { plain: 0, inline: 2 } as const;

/** Type bits of a mode and the type in a directory entry. */
export const fileTypes = {
  file: { modeBits: 0o100000, entryType: 1 },
  directory: { modeBits: 0o040000, entryType: 2 },
  whiteout: { modeBits: 0o020000, entryType: 3 },
  fifo: { modeBits: 0o010000, entryType: 5 },
  symlink: { modeBits: 0o120000, entryType: 7 },
} as const;

/** One inode, as written. */
type Inode = {
  typeBits: number;
  attributes: Attributes;
  layout: number;
  size: number;
  firstBlock: number;
  links: number;
  /** Reported as the inode's number; unique in the image. */
  number: number;
};

/** The inode, followed by its extended attributes. */
export function encodeInode(inode: Inode): Uint8Array {
  const xattrs = encodeXattrs(inode.attributes.xattrs);
  const bytes = new Uint8Array(inodeSize + xattrs.length);
  const view = new DataView(bytes.buffer);
  const { attributes } = inode;
  view.setUint16(0, 1 | (inode.layout << 1), true);
  view.setUint16(2, xattrs.length === 0 ? 0 : 1 + (xattrs.length - xattrHeaderSize) / 4, true);
  view.setUint16(4, inode.typeBits | attributes.mode, true);
  view.setBigUint64(8, BigInt(inode.size), true);
  view.setUint32(16, inode.firstBlock, true);
  view.setUint32(20, inode.number, true);
  view.setUint32(24, attributes.uid, true);
  view.setUint32(28, attributes.gid, true);
  view.setBigInt64(32, BigInt(attributes.mtimeSeconds), true);
  view.setUint32(40, attributes.mtimeNanoseconds, true);
  view.setUint32(44, inode.links, true);
  bytes.set(xattrs, inodeSize);
  return bytes;
}

const xattrHeaderSize = 12;
const xattrPrefixes: [string, number][] = [
  ['system.posix_acl_access', 2],
  ['system.posix_acl_default', 3],
  ['user.', 1],
  ['trusted.', 4],
  ['security.', 6],
];

/** True for extended attributes that the format can hold. */
export function isStorable(name: string): boolean {
  const prefix = xattrPrefixes.find(([text]) => name.startsWith(text));
  if (prefix === undefined) return false;
  const suffixLength = Buffer.byteLength(name, 'latin1') - prefix[0].length;
  // Access lists use the whole name as class; the others need something after the dot.
  return suffixLength <= 255 && (suffixLength > 0 || !name.endsWith('.'));
}

/** All extended attributes of one file as written: the kernel allows a file no more (xattr(7)). */
const xattrBytesMax = 65_536;

/** Bytes that extended attributes occupy behind an inode. */
export function xattrsSize(xattrs: ReadonlyMap<string, Uint8Array>): number {
  return encodeXattrs(xattrs).length;
}

function encodeXattrs(xattrs: ReadonlyMap<string, Uint8Array>): Uint8Array {
  if (xattrs.size === 0) return new Uint8Array(0);
  const parts: Uint8Array[] = [new Uint8Array(xattrHeaderSize)];
  for (const [name, value] of [...xattrs].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [prefix = '', index = 0] = xattrPrefixes.find(([text]) => name.startsWith(text)) ?? [];
    const suffix = Buffer.from(name.slice(prefix.length), 'latin1');
    const entry = new Uint8Array(roundUp(4 + suffix.length + value.length, 4));
    entry[0] = suffix.length;
    entry[1] = index;
    new DataView(entry.buffer).setUint16(2, value.length, true);
    entry.set(suffix, 4);
    entry.set(value, 4 + suffix.length);
    parts.push(entry);
  }
  const bytes = Buffer.concat(parts);
  if (bytes.length > xattrBytesMax)
    throw new AtollError('invalid', `a file has more than ${xattrBytesMax} bytes of extended attributes`);
  return bytes;
}

/** One entry of a directory: a name, and the slot of its inode. */
type Entry = { name: ByteString; slot: number; type: number };

const entrySize = 12;

/** Distributes a directory's sorted entries over blocks. */
export function splitEntries<T extends { name: ByteString }>(entries: T[]): T[][] {
  const blocks: T[][] = [];
  let used = blockSize;
  for (const entry of entries) {
    const needed = entrySize + entry.name.length;
    if (used + needed > blockSize) {
      blocks.push([]);
      used = 0;
    }
    blocks.at(-1)?.push(entry);
    used += needed;
  }
  return blocks;
}

/** Size in bytes of a directory whose entries are in `blocks`; the last block counts as far as it is used. */
export function entriesSize(blocks: { name: ByteString }[][]): number {
  const last = blocks.at(-1) ?? [];
  return (blocks.length - 1) * blockSize + last.reduce((sum, { name }) => sum + entrySize + name.length, 0);
}

/** One block of a directory, without padding. */
export function encodeEntries(entries: Entry[]): Uint8Array {
  const bytes = new Uint8Array(entries.reduce((sum, { name }) => sum + entrySize + name.length, 0));
  const view = new DataView(bytes.buffer);
  let nameOffset = entries.length * entrySize;
  entries.forEach(({ name, slot, type }, index) => {
    view.setBigUint64(index * entrySize, BigInt(slot), true);
    view.setUint16(index * entrySize + 8, nameOffset, true);
    view.setUint8(index * entrySize + 10, type);
    bytes.set(Buffer.from(name, 'latin1'), nameOffset);
    nameOffset += name.length;
  });
  return bytes;
}

/** The first block of an image. It has no time and no UUID: equal content has an equal digest. */
export function encodeSuperblock(facts: {
  rootSlot: number;
  inodes: number;
  blocks: number;
  metaBlock: number;
}): Uint8Array {
  const bytes = new Uint8Array(blockSize);
  const view = new DataView(bytes.buffer, superblockOffset, superblockSize);
  view.setUint32(0, magic, true);
  view.setUint32(8, featureMtime, true);
  view.setUint8(12, Math.log2(blockSize));
  view.setUint16(14, facts.rootSlot, true);
  view.setBigUint64(16, BigInt(facts.inodes), true);
  view.setUint32(36, facts.blocks, true);
  view.setUint32(40, facts.metaBlock, true);
  return bytes;
}

/** The smallest multiple of `unit` that is at least `value`. */
export function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}
