import { afterEach, beforeEach, expect, test } from 'bun:test';
import { lstat, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { extractArchiveTree } from './archive-tree.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'atoll-archive-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

type Entry = { name: string; type: '0' | '1' | '2' | '3'; link?: string; content?: string };

/** A tar archive of the given entries, byte by byte: tar itself would not write names like these. */
function tarOf(entries: Entry[]): Uint8Array {
  const blocks = entries.flatMap(({ name, type, link = '', content = '' }) => {
    const header = Buffer.alloc(512);
    const octal = (value: number, offset: number, width: number) =>
      header.write(`${value.toString(8).padStart(width - 1, '0')}\0`, offset);
    header.write(name, 0);
    octal(0o755, 100, 8);
    octal(0, 108, 8);
    octal(0, 116, 8);
    octal(content.length, 124, 12);
    octal(0, 136, 12);
    header.write(`        ${type}${link}`, 148);
    header.write('ustar\x0000', 257);
    octal(1, 329, 8);
    octal(3, 337, 8);
    octal(
      header.reduce((sum, byte) => sum + byte, 0),
      148,
      7,
    );
    const body = Buffer.alloc(Math.ceil(content.length / 512) * 512);
    body.write(content);
    return [header, body];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

async function extract(entries: Entry[]): Promise<string> {
  const archive = join(dir, 'image.tar');
  await writeFile(archive, tarOf(entries));
  const tree = join(dir, 'tree');
  await extractArchiveTree(archive, tree).catch(() => {});
  return tree;
}

test('files, links and modes arrive; device nodes do not', async () => {
  const tree = await extract([
    { name: 'bin/sh', type: '0', content: 'shell' },
    { name: 'bin/bash', type: '1', link: 'bin/sh' },
    { name: 'sh', type: '2', link: '/bin/sh' },
    { name: 'dev/zero', type: '3' },
  ]);
  expect(await readFile(join(tree, 'bin/bash'), 'utf8')).toBe('shell');
  expect((await lstat(join(tree, 'bin/sh'))).mode & 0o777).toBe(0o755);
  expect((await lstat(join(tree, 'sh'))).isSymbolicLink()).toBe(true);
  expect(await readdir(tree)).not.toContain('dev');
});

const attacks: Record<string, Entry[]> = {
  'a name with ..': [{ name: '../outside', type: '0', content: 'x' }],
  'an absolute name': [{ name: '@/outside', type: '0', content: 'x' }],
  'a file through a link to the parent': [
    { name: 'up', type: '2', link: '..' },
    { name: 'up/outside', type: '0', content: 'x' },
  ],
  'a file through an absolute link': [
    { name: 'up', type: '2', link: '@' },
    { name: 'up/outside', type: '0', content: 'x' },
  ],
  'a file written through a link of its own name': [
    { name: 'outside', type: '2', link: '@/outside' },
    { name: 'outside', type: '0', content: 'x' },
  ],
  'a hard link to a file outside, then written': [
    { name: 'victim', type: '1', link: '@/victim' },
    { name: 'victim', type: '0', content: 'x' },
  ],
};

for (const [name, entries] of Object.entries(attacks)) {
  test(`${name} writes nothing outside of the tree`, async () => {
    await writeFile(join(dir, 'victim'), 'untouched');
    const here = (text: string | undefined) => text?.replace('@', dir);
    await extract(
      entries.map(entry => ({
        ...entry,
        name: here(entry.name) ?? '',
        ...(entry.link === undefined ? {} : { link: here(entry.link) ?? '' }),
      })),
    );
    expect((await readdir(dir)).sort()).toEqual(['image.tar', 'tree', 'victim']);
    expect(await readFile(join(dir, 'victim'), 'utf8')).toBe('untouched');
  });
}

test('a missing archive is named', async () => {
  await expect(extractArchiveTree(join(dir, 'none.tar'), join(dir, 'tree'))).rejects.toThrow('none.tar');
});
