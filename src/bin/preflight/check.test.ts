import { expect, test } from 'bun:test';
import { readSettings } from '../settings/settings.ts';
import { requireUsableHost } from './check.ts';
import type { HostFacts } from './facts.ts';

// Machines unlike this one, through pretended facts. What this machine can be made into is in
// test/setup/bad-input.test.ts.

const dataDir = '/srv/atoll';
const good: HostFacts = {
  system: 'linux',
  architecture: 'x64',
  kernel: '6.1.0-18-amd64',
  userId: 0,
  hasProgram: () => true,
  placeOf: () => ({ isDirectory: true, ownerId: 0 }),
  fileSystemOf: () => 0xef53n,
  isReadOnly: () => false,
  freeBytesOf: () => 20 * 2 ** 30,
};
const settings = readSettings({ ATOLL_DATA_DIR: dataDir });
const check =
  (facts: Partial<HostFacts>, isFirst = true) =>
  () =>
    requireUsableHost(settings, { ...good, ...facts }, isFirst);

test('a machine that can do is not refused', () => {
  expect(check({})).not.toThrow();
  for (const kernel of ['6.1.0-50-cloud-amd64', '6.18.44-fc', '10.0']) expect(check({ kernel })).not.toThrow();
});

const rows: [string, Partial<HostFacts>, RegExp][] = [
  ['another system', { system: 'darwin' }, /runs on Linux, and this is darwin: use a Linux machine/],
  ['another architecture', { architecture: 'riscv64' }, /x86-64 and arm64, and this machine is riscv64: use another/],
  ['an old kernel', { kernel: '5.10.0-28-amd64' }, /kernel is 5\.10\.0-28-amd64, .* 6\.1 or newer: install one/],
  ['a kernel that is little too old', { kernel: '6.0.12' }, /kernel is 6\.0\.12/],
  ['an older major', { kernel: '4.20.1' }, /kernel is 4\.20\.1/],
  ['no root', { userId: 1000 }, /needs root, .*: run it with sudo/],
  [
    'a missing program',
    { hasProgram: name => name !== 'nft' },
    /^nft can't be found in PATH, and a start needs it: run `apt install nftables`/,
  ],
  [
    'many missing programs, each package once',
    { hasProgram: name => !['setpriv', 'unshare', 'crun'].includes(name) },
    /^crun, setpriv, unshare can't .* needs them: run `apt install crun util-linux`/,
  ],
  [
    'a file',
    { placeOf: () => ({ isDirectory: false, ownerId: 0 }) },
    /ATOLL_DATA_DIR is \/srv\/atoll, which is a file/,
  ],
  [
    'a place below a file',
    { placeOf: path => (path === '/srv' ? { isDirectory: false, ownerId: 0 } : undefined) },
    /ATOLL_DATA_DIR is \/srv\/atoll, and \/srv is a file: set it to a directory/,
  ],
  [
    'a file for the cache',
    { placeOf: path => ({ isDirectory: path !== '/var/cache/atoll', ownerId: 0 }) },
    /ATOLL_CACHE_DIR is \/var\/cache\/atoll, which is a file: set it to a directory/,
  ],
  [
    "another user's cache",
    { placeOf: path => ({ isDirectory: true, ownerId: path === '/var/cache/atoll' ? 1000 : 0 }) },
    /cache\/atoll belongs to user 1000, .*set ATOLL_CACHE_DIR to another/,
  ],
  ["another user's", { placeOf: () => ({ isDirectory: true, ownerId: 1000 }) }, /belongs to user 1000, .*chown root/],
  ['NFS', { fileSystemOf: () => 0x6969n }, /\/srv\/atoll is on NFS, .* ext4, xfs or btrfs/],
  ['CIFS', { fileSystemOf: () => 0xff534d42n }, /is on CIFS/],
  ['FUSE', { fileSystemOf: () => 0x65735546n }, /is on FUSE/],
  ['no space', { freeBytesOf: () => 300 * 2 ** 20 }, /300 MiB are free for \/srv\/atoll, .* needs 3072 MiB/],
];

for (const [what, facts, says] of rows) {
  test(`refused in one sentence: ${what}`, () => {
    expect(check(facts)).toThrow(says);
    expect(check(facts)).toThrow(/Nothing was changed\.$/);
  });
}

test('an installation that is there starts with little room too', () => {
  expect(check({ freeBytesOf: () => 0 }, false)).not.toThrow();
});

test('a first start needs the reserve and a gibibyte, and not a byte more', () => {
  const needed = 3072 * 2 ** 20;
  expect(check({ freeBytesOf: () => needed })).not.toThrow();
  expect(check({ freeBytesOf: () => needed - 1 })).toThrow('3071 MiB are free');
});

test('a directory that is still to be made is none of the kernel’s', () => {
  const root = { isDirectory: true, ownerId: 0 };
  const at = (directory: string, there: string[]) => () =>
    requireUsableHost(
      readSettings({ ATOLL_DATA_DIR: directory }),
      { ...good, placeOf: path => (there.includes(path) ? root : undefined) },
      true,
    );
  for (const directory of ['/proc/atoll', '/sys/a/b', '/dev/atoll'])
    expect(at(directory, ['/', '/proc'])).toThrow(`ATOLL_DATA_DIR is ${directory}, where nothing can be kept`);
  for (const directory of ['/srv/atoll', '/process/atoll', '/srv/proc/atoll'])
    expect(at(directory, ['/', '/proc'])).not.toThrow();
  // A file system that exists, such as a disk mounted below /dev.
  expect(at('/dev/disk', ['/', '/proc', '/dev/disk'])).not.toThrow();
});

test('the first fault reported is the one that makes the others irrelevant', () => {
  const nothing = { hasProgram: () => false, fileSystemOf: () => 0x6969n };
  expect(check({ ...nothing, system: 'darwin' })).toThrow('runs on Linux');
  expect(check(nothing)).toThrow("can't be found in PATH");
});
