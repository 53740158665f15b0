import { expect, test } from 'bun:test';
import type { TarEntry } from '../archive/tar.ts';
import { defaultAttributes, type DirectoryNode, type TreeNode } from '../erofs/tree.ts';
import type { ImageWriter } from '../erofs/writer.ts';
import { importLayer } from './import-layer.ts';

/** A writer that keeps what it is given, in the tree. */
const writer: ImageWriter = {
  beginFile() {
    const parts: Uint8Array[] = [];
    return {
      write: part => void parts.push(part),
      end: () => ({ size: 0, firstBlock: 0, tail: Buffer.concat(parts) }),
    };
  },
  finish: () => ({ bytes: 0, inodes: 0 }),
};

const entry = (type: TarEntry['type'], path: string, target = ''): TarEntry => ({
  ...{ type, path, target, attributes: defaultAttributes, size: 0, offset: 0 },
  content: async take => take(Buffer.from(`of ${path}`)),
});
const file = (path: string) => entry('file', path);
const directory = (path: string) => entry('directory', path);
const symlink = (path: string, target: string) => entry('symlink', path, target);
const link = (path: string, target: string) => entry('link', path, target);

async function* each(entries: TarEntry[]) {
  yield* entries;
}
const imported = (...entries: TarEntry[]) => importLayer(each(entries), writer);

/** Each path of a tree and what is there, sorted by name. */
function list(node: DirectoryNode, below = ''): string[] {
  return [...node.entries].sort().flatMap(([name, child]) => {
    const path = `${below}${name}`;
    return child.kind === 'directory'
      ? [`${path}/${hides(child)}`, ...list(child, `${path}/`)]
      : [`${path}${of(child)}`];
  });
}
const hides = ({ opaque }: DirectoryNode) => (opaque ? ' hides what was there' : '');
function of(node: TreeNode): string {
  if (node.kind === 'file') return `: ${Buffer.from(node.data.tail).toString()}`;
  return node.kind === 'symlink' ? ` -> ${node.target}` : ` ${node.kind}`;
}

test('a name may begin at the root, and its directories need no entries', async () => {
  expect(list(await imported(file('/a/./b//c'), directory('d/')))).toEqual(['a/', 'a/b/', 'a/b/c: of /a/./b//c', 'd/']);
});

for (const path of ['../x', 'a/../x', 'a/..', `${'n'.repeat(256)}/x`, 'a\0b', `${'a/'.repeat(2048)}x`])
  test(`a file may not be called ${path.length > 40 ? `${path.slice(0, 8)}…` : JSON.stringify(path)}`, async () => {
    await expect(imported(file(path))).rejects.toMatchObject({ code: 'invalid' });
    await expect(imported(file('x'), link('y', path))).rejects.toMatchObject({ code: 'invalid' });
  });

test('the longest name and the longest path are taken', async () => {
  expect(list(await imported(file('n'.repeat(255))))).toHaveLength(1);
  expect(list(await imported(file(`${'a/'.repeat(2047)}x`)))).toHaveLength(2048);
});

test('an entry below a link goes where the link leads, inside the archive', async () => {
  const tree = await imported(
    ...[symlink('usr/here', '../lib/./deep'), symlink('there', '/lib'), symlink('up', '../../../lib')],
    ...[file('usr/here/a'), file('there/b'), file('up/c')],
  );
  const links = ['there -> /lib', 'up -> ../../../lib', 'usr/', 'usr/here -> ../lib/./deep'];
  const files = ['lib/', 'lib/b: of there/b', 'lib/c: of up/c', 'lib/deep/', 'lib/deep/a: of usr/here/a'];
  expect(list(tree)).toEqual([...files, ...links]);
});

test('links that lead in a circle are refused, and forty in a row are followed', async () => {
  const row = (length: number) =>
    Array.from({ length }, (_, index) => symlink(`l${index}`, index + 1 < length ? `l${index + 1}` : 'end'));
  expect(list(await imported(...row(40), file('l0/x')))).toContain('end/x: of l0/x');
  await expect(imported(...row(41), file('l0/x'))).rejects.toThrow('lead in a circle');
  await expect(imported(symlink('a', 'b'), symlink('b', 'a'), file('a/x'))).rejects.toThrow('lead in a circle');
});

test('a link has to lead somewhere that a link can', async () => {
  for (const target of ['', 'a\0b', 'x'.repeat(4096)])
    await expect(imported(symlink('a', target))).rejects.toThrow('to nothing that a link can lead to');
});

test('two names of a file are one file, and a name of what is not there or no file is refused', async () => {
  const { entries } = await imported(file('a/x'), link('y', 'a/x'));
  expect(entries.get('y')).toBe((entries.get('a') as DirectoryNode).entries.get('x') as TreeNode);
  for (const target of ['z', 'a', 'gone'])
    await expect(imported(file('a/x'), entry('file', '.wh.gone'), link('y', target))).rejects.toThrow('does not hold');
});

test('a whiteout hides what is below and leaves what this layer has, whichever comes first', async () => {
  expect(list(await imported(file('.wh.a'), file('b'), file('.wh.b'), file('c/x'), file('.wh.c')))).toEqual([
    ...['a whiteout', 'b: of b', 'c/ hides what was there', 'c/x: of c/x'],
  ]);
  for (const made of [directory('c'), file('c/x')])
    expect(list(await imported(file('.wh.c'), made))[0]).toBe('c/ hides what was there');
  expect(list(await imported(file('d/x'), file('d/.wh..wh..opq')))[0]).toBe('d/ hides what was there');
});

test('a whiteout of nothing is refused, the union file system’s own files and devices are left out', async () => {
  for (const name of ['.wh.', '.wh..', '.wh...'])
    await expect(imported(file(name))).rejects.toMatchObject({ code: 'invalid' });
  expect(list(await imported(file('.wh..wh.plnk/x'), file('.wh..wh.aufs'), entry('device', 'null')))).toEqual([
    '.wh..wh.plnk/',
    '.wh..wh.plnk/x: of .wh..wh.plnk/x',
  ]);
  expect(list(await imported(entry('fifo', 'pipe')))).toEqual(['pipe fifo']);
});

test('a directory that is named twice keeps its files and has the later attributes', async () => {
  const later = { ...directory('a'), attributes: { ...defaultAttributes, mode: 0o700 } };
  const root = await imported(file('a/x'), later, { ...directory('./'), attributes: { ...defaultAttributes, uid: 7 } });
  const a = root.entries.get('a') as DirectoryNode;
  expect([a.attributes.mode, a.entries.size, root.attributes.uid]).toEqual([0o700, 1, 7]);
});
