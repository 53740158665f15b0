import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readdirSync, readSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openRoot, xattrsOf } from './root.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-root-'));
  mkdirSync(join(dir, 'top/a/b'), { recursive: true });
  writeFileSync(join(dir, 'top/a/b/file'), 'content');
  writeFileSync(join(dir, 'secret'), 'of the host');
});
afterEach(() => rmSync(dir, { recursive: true }));

const openTop = () => openRoot(join(dir, 'top'));
const link = (target: string, name: string) => symlinkSync(target, join(dir, 'top', name));

test('what is there is told by its path beneath the root', () => {
  link('a', 'link');
  using root = openTop();
  expect(root.stat('')?.isDirectory()).toBe(true);
  expect(root.stat('a/b/file')?.size).toBe(7n);
  expect(root.stat('link')?.isSymbolicLink()).toBe(true);
  expect(root.readLink('link')).toBe('a');
  expect(root.stat('missing')).toBeUndefined();
  expect(root.stat('a/b/file/below')).toBeUndefined();
  using file = root.open('a/b/file');
  const bytes = Buffer.alloc(20);
  expect(bytes.toString('latin1', 0, readSync(file.fd, bytes))).toBe('content');
});

test('names are those of the directory, all of them and in any bytes', () => {
  const many = Array.from({ length: 3000 }, (_, index) => `a-file-with-a-name-of-this-length-${index}`);
  for (const name of many) writeFileSync(join(dir, 'top', name), '');
  writeFileSync(Buffer.from(`${join(dir, 'top')}/caf\xe9`, 'latin1'), 'x');
  using root = openTop();
  expect(root.names('').sort()).toEqual(['a', 'caf\xe9', ...many].sort());
  expect(root.names('a')).toEqual(['b']);
  expect(root.stat('caf\xe9')?.size).toBe(1n);
  expect(() => root.names('a/b/file')).toThrow('ENOTDIR: openat2');
});

test('nothing outside of the root is reached, by dots or by links', () => {
  link('..', 'up');
  link(dir, 'away');
  link('a', 'within');
  using root = openTop();
  for (const path of ['../secret', 'a/../../secret', '/etc/passwd'])
    expect(() => root.open(path)).toThrow(expect.objectContaining({ code: 'EXDEV' }));
  for (const path of ['up/secret', 'away/secret', 'within/b/file'])
    expect(() => root.open(path)).toThrow(expect.objectContaining({ code: 'ELOOP' }));
  // A link itself can't be read as a file.
  expect(() => root.open('within')).toThrow(expect.objectContaining({ code: 'ELOOP' }));
  expect(() => root.stat('../secret')).toThrow('EXDEV');
});

test('links are followed as a system with this root would', () => {
  link('/a/b', 'absolute');
  link('../../../a/./b', 'beyond');
  link('absolute/file', 'twice');
  link('missing', 'broken');
  symlinkSync('../../absolute', join(dir, 'top/a/b/back'));
  symlinkSync('/a', join(dir, 'top/a/b/up'));
  symlinkSync('file', join(dir, 'top/a/b/beside'));
  using root = openTop();
  const places = {
    ...{ '': '', '/': '', '.': '', '..': '', '/a//b/.': 'a/b', 'a/b/..': 'a', 'a/../a/b/file': 'a/b/file' },
    ...{ absolute: 'a/b', 'beyond/file': 'a/b/file', twice: 'a/b/file', 'a/b/back/back/file': 'a/b/file' },
    ...{ 'absolute/../b': 'a/b', '/twice': 'a/b/file', 'a/b/up/b': 'a/b', 'a/b/beside': 'a/b/file' },
  };
  for (const [path, place] of Object.entries(places)) expect([path, root.follow(path)]).toEqual([path, place]);
  for (const path of ['broken', 'missing', 'a/missing/..', 'a/b/file/x'])
    expect([path, root.follow(path)]).toEqual([path, undefined]);
});

test('forty links are followed, and a circle ends', () => {
  for (let number = 0; number < 41; number++) link(`l${number + 1}`, `l${number}`);
  writeFileSync(join(dir, 'top/l41'), '');
  link('circle', 'circle');
  using root = openTop();
  expect(root.follow('l1')).toBe('l41');
  expect(root.follow('l0')).toBeUndefined();
  expect(root.follow('circle')).toBeUndefined();
});

test('extended attributes of files and directories are read, and there may be none', () => {
  using root = openTop();
  using none = root.open('a/b/file');
  expect(xattrsOf(none)).toEqual(new Map());
  for (const path of ['a', 'a/b/file']) {
    const set = ['setfattr', '-n', 'trusted.one', '-v', 'first', join(dir, 'top', path)];
    expect(Bun.spawnSync(set).exitCode).toBe(0);
    expect(Bun.spawnSync(['setfattr', '-n', 'trusted.empty', join(dir, 'top', path)]).exitCode).toBe(0);
    using opened = root.open(path);
    const texts = [...xattrsOf(opened)].map(([name, value]) => [name, Buffer.from(value).toString()]);
    expect(texts.sort()).toEqual([
      ['trusted.empty', ''],
      ['trusted.one', 'first'],
    ]);
  }
});

test('a file system without extended attributes has none, and what is closed fails', () => {
  using root = openRoot('/proc/self');
  using status = root.open('status');
  expect(xattrsOf(status)).toEqual(new Map());
  expect(() => xattrsOf({ fd: -1, [Symbol.dispose]: () => {} })).toThrow('EBADF: flistxattr');
});

test('errors say what was asked, and a path that is too long is the stranger’s fault', () => {
  expect(() => openRoot(join(dir, 'none'))).toThrow(`ENOENT: openat2 '${join(dir, 'none')}'`);
  expect(() => openRoot(join(dir, 'secret'))).toThrow(expect.objectContaining({ code: 'ENOTDIR' }));
  using root = openTop();
  const long = `${'a/'.repeat(2100)}x`;
  expect(() => root.stat(long)).toThrow(expect.objectContaining({ code: 'invalid' }));
  expect(() => root.readLink('a')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
  expect(() => root.readLink('none')).toThrow("ENOENT: openat2 'none'");
});

test('no descriptor is left of what was asked', () => {
  const open = () => readdirSync('/proc/self/fd').length;
  link('a', 'link');
  const before = open();
  {
    using root = openTop();
    for (let time = 0; time < 20; time++) {
      root.stat('a');
      root.names('a');
      root.readLink('link');
      root.follow('link/b/file');
    }
  }
  expect(open()).toBe(before);
});
