import { readFileSync } from 'node:fs';
import { writeTar, type NewTarEntry } from '../../../src/base/write-tar.ts';

/** A system of only busybox, as in small distributions: `/bin/sh`, no bash, no package manager. */
export function busyboxTree(): Uint8Array {
  const busybox = readFileSync('/usr/bin/busybox');
  const root = { mode: 0o755, uid: 0, gid: 0 };
  const directories = ['bin', 'etc', 'tmp', 'usr', 'usr/bin', 'root'].map((path): NewTarEntry => ({
    path,
    type: 'directory',
    attributes: root,
  }));
  const links = [
    'sh',
    'ls',
    'cat',
    'id',
    'mkdir',
    'chmod',
    'chown',
    'grep',
    'sed',
    'rm',
    'ln',
    'tail',
    'head',
    'echo',
    'test',
    'env',
    'stat',
    'touch',
    'sleep',
    'wc',
    'mktemp',
    'printf',
  ].map((name): NewTarEntry => ({ path: `bin/${name}`, type: 'symlink', target: 'busybox', attributes: root }));
  return writeTar([
    ...directories,
    { path: 'bin/busybox', type: 'file', attributes: root, content: busybox },
    ...links,
    text('etc/os-release', 'ID=small\n'),
  ]);
}

/** One file and nothing else: no shell, no users. */
export const distrolessTree = (): Uint8Array => writeTar([text('app/hello', 'hello\n')]);

export function text(path: string, content: string, attributes = { mode: 0o644, uid: 0, gid: 0 }): NewTarEntry {
  return { path, type: 'file', attributes, content: Buffer.from(content) };
}

export const symlink = (path: string, target: string): NewTarEntry => ({
  path,
  type: 'symlink',
  target,
  attributes: { mode: 0o777, uid: 0, gid: 0 },
});
