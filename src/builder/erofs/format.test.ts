import { expect, test } from 'bun:test';
import {
  blockSize,
  encodeEntries,
  encodeInode,
  encodeSuperblock,
  entriesSize,
  isStorable,
  roundUp,
  slotSize,
  splitEntries,
  xattrsSize,
} from './format.ts';
import { defaultAttributes } from './tree.ts';

test('an extended attribute has a class that the format knows, and a name that fits', () => {
  for (const name of ['user.a', 'trusted.overlay.opaque', 'security.capability', `user.${'n'.repeat(255)}`])
    expect([name, isStorable(name)]).toEqual([name, true]);
  for (const name of ['system.posix_acl_access', 'system.posix_acl_default'])
    expect([name, isStorable(name)]).toEqual([name, true]);
  for (const name of ['user.', 'trusted.', 'other.a', 'system.other', '', `user.${'n'.repeat(256)}`])
    expect([name, isStorable(name)]).toEqual([name, false]);
});

test('extended attributes take a header, and each its name and value in words of four bytes', () => {
  expect(xattrsSize(new Map())).toBe(0);
  expect(xattrsSize(new Map([['user.a', Buffer.from('bcd')]]))).toBe(12 + 8);
  expect(xattrsSize(new Map([['user.a', Buffer.from('bcde')]]))).toBe(12 + 12);
  // An access list has its whole name as its class.
  expect(xattrsSize(new Map([['system.posix_acl_access', Buffer.from('abcd')]]))).toBe(12 + 8);
});

test('a file has as many bytes of extended attributes as the kernel lets it have', () => {
  const most = 65_536 - 12 - 8;
  expect(xattrsSize(new Map([['user.abcd', Buffer.alloc(most)]]))).toBe(65_536);
  expect(() => xattrsSize(new Map([['user.abcd', Buffer.alloc(most + 1)]]))).toThrow('more than 65536 bytes');
});

test('entries of a directory fill blocks, and none lies in two', () => {
  const named = (length: number) => ({ name: 'n'.repeat(length) });
  const half = named(blockSize / 2 - 12);
  expect(splitEntries([])).toEqual([]);
  expect(splitEntries([half, half])).toEqual([[half, half]]);
  expect(splitEntries([half, half, half])).toEqual([[half, half], [half]]);
  const more = named(blockSize / 2 - 11);
  expect(splitEntries([half, more, half])).toEqual([[half], [more], [half]]);
  expect(entriesSize([[half, half]])).toBe(blockSize);
  expect(
    entriesSize([
      [half, half],
      [named(1), named(2)],
    ]),
  ).toBe(blockSize + 27);
});

test('a block of entries has slots and types first, then the names', () => {
  const bytes = Buffer.from(
    encodeEntries([
      { name: 'a', slot: 3, type: 2 },
      { name: 'caf\xe9', slot: 2 ** 33, type: 1 },
    ]),
  );
  expect(bytes.length).toBe(24 + 5);
  expect([bytes.readBigUInt64LE(0), bytes.readUInt16LE(8), bytes.readUInt8(10)]).toEqual([3n, 24, 2]);
  expect([bytes.readBigUInt64LE(12), bytes.readUInt16LE(20), bytes.readUInt8(22)]).toEqual([2n ** 33n, 25, 1]);
  expect(bytes.toString('latin1', 24)).toBe('acaf\xe9');
});

test('a multiple is not rounded', () => {
  expect([0, 1, slotSize, slotSize + 1].map(value => roundUp(value, slotSize))).toEqual([0, 32, 32, 64]);
});

test('a superblock says what the image has, 1,024 bytes from its beginning', () => {
  const bytes = Buffer.from(encodeSuperblock({ rootSlot: 2, inodes: 7, blocks: 9, metaBlock: 5 }));
  expect(bytes.length).toBe(blockSize);
  const view = bytes.subarray(1024);
  expect([view.readUInt32LE(0), view.readUInt8(12)]).toEqual([0xe0f5_e1e2, 12]);
  // Inodes carry their modification time (EROFS_FEATURE_COMPAT_MTIME).
  expect(view.readUInt32LE(8)).toBe(2);
  expect([view.readUInt16LE(14), view.readBigUInt64LE(16)]).toEqual([2, 7n]);
  expect([view.readUInt32LE(36), view.readUInt32LE(40)]).toEqual([9, 5]);
});

test('an inode has the number that programs are shown', () => {
  const inode = { typeBits: 0o100000, layout: 2, size: 3, firstBlock: 4, links: 5, number: 6 };
  const bytes = Buffer.from(encodeInode({ ...inode, attributes: defaultAttributes }));
  expect([bytes.length, bytes.readUInt32LE(20), bytes.readUInt32LE(44)]).toEqual([64, 6, 5]);
});
