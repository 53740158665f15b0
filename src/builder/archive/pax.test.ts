import { expect, test } from 'bun:test';
import { extensionOfPax } from './pax.ts';

/** A record with its length, which includes its own digits. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return `${length}${rest}`;
}
const read = (pairs: Record<string, string>) =>
  extensionOfPax(
    Object.entries(pairs)
      .map(([key, value]) => record(key, value))
      .join(''),
  );

test('a header says what the entry behind it is', () => {
  const xattrs = new Map();
  expect(extensionOfPax('')).toEqual({ xattrs });
  expect(read({ path: 'a=b\nc', linkpath: 'to', size: '12', uid: '7', gid: '0', comment: 'x' })).toEqual({
    ...{ path: 'a=b\nc', target: 'to', size: 12, uid: 7, gid: 0, xattrs },
  });
  expect(read({ 'GNU.sparse.major': '1' })).toEqual({ sparse: true, xattrs });
  expect(read({ path: '' })).toEqual({ path: '', xattrs });
  expect(extensionOfPax(record('path', 'a') + record('path', 'b')).path).toBe('b');
});

test.each(['1e3', '0x10', '', ' 1', '1.5', '1234567890123456789'])('%p is no whole number', text => {
  expect(read({ size: text, uid: text, gid: text })).toMatchObject({
    size: Number.NaN,
    uid: Number.NaN,
    gid: Number.NaN,
  });
});

test.each([
  ['1234567890', 1234567890, 0],
  ['12.5', 12, 500_000_000],
  ['12.000000001', 12, 1],
  ['12.1234567899', 12, 123_456_789],
  ['-12', -12, 0],
  ['-12.25', -13, 750_000_000],
  ['-12.0', -12, 0],
  ['0.75', 0, 750_000_000],
])('a time of %s is %d seconds and %d nanoseconds', (mtime, mtimeSeconds, mtimeNanoseconds) => {
  expect(read({ mtime })).toMatchObject({ mtimeSeconds, mtimeNanoseconds });
});

test('attributes are kept as bytes, those alone that an archive may set', () => {
  const { xattrs } = read({
    'SCHILY.xattr.user.note': 'a=\n\xff',
    'SCHILY.xattr.security.capability': 'c',
    'SCHILY.xattr.security.selinux': 's',
    'SCHILY.xattr.security.capability2': 's',
    'SCHILY.xattr.trusted.overlay.opaque': 'y',
    'SCHILY.xattr.system.posix_acl_access': 'y',
    'SCHILY.xattr.user.': 'no name',
    'SCHILY.xattr.': 'none',
  });
  expect([...xattrs]).toEqual([
    ['user.note', Buffer.from([0x61, 0x3d, 0x0a, 0xff])],
    ['security.capability', Buffer.from('c')],
  ]);
});

test('a file has at most 64 KiB of attributes, and none that is as long', () => {
  const sized = (...lengths: number[]) =>
    read(Object.fromEntries(lengths.map((length, index) => [`SCHILY.xattr.user.${index}`, 'x'.repeat(length)])));
  const nameBytes = 'user.0'.length;
  expect(sized(65_536 - nameBytes).xattrs.size).toBe(1);
  expect(sized(40_000, 25_536 - 2 * nameBytes).xattrs.size).toBe(2);
  expect(() => sized(40_000, 25_537 - 2 * nameBytes)).toThrow('more than 65536 bytes of attributes');
  expect(sized(65_536).xattrs.size).toBe(0);
});

test.each([
  'x',
  '8 path=a\n',
  '11 path=a\n',
  '9 path=ab',
  '9 path-ab\n',
  ' path=a\n',
  '4 path=a\n',
  '0 path=a\n',
  '-9 path=a\n',
])('%j is no record', text => {
  expect(() => extensionOfPax(text)).toThrow('malformed extended header');
  expect(() => extensionOfPax(record('uid', '1') + text)).toThrow('malformed extended header');
});

test('a record ends where its length says, and its key before', () => {
  expect(() => extensionOfPax(`7 path\n${record('uid', '1')}`)).toThrow('malformed extended header');
  expect(() => extensionOfPax(`${'0'.repeat(9)}9 path=a\n`)).toThrow('malformed extended header');
  expect(() => extensionOfPax(`${'0'.repeat(9)}10 path=abcdefgh\n`)).toThrow('malformed extended header');
});
