import { expect, test } from 'bun:test';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DirectoryNode } from '../erofs/tree.ts';
import { createImageWriter } from '../erofs/writer.ts';
import { copyBetween } from './copy-between.ts';
import { createMergedTree } from './merged-tree.ts';
import { openRoot } from './root.ts';

/** The paths that a copy has created, files only. */
async function copied(files: string[], sources: string[], destination: string): Promise<string[]> {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-copy-'));
  const output = openSync(join(dir, 'image'), 'wx+');
  try {
    for (const name of ['from', 'view']) mkdirSync(join(dir, name));
    for (const name of files) writeFileSync(join(dir, 'from', name), '');
    using view = openRoot(join(dir, 'view'));
    const tree = createMergedTree(view);
    const writer = createImageWriter(output, { bytesMax: 1 << 20, inodesMax: 100 });
    await copyBetween({ from: join(dir, 'from'), sources, copy: { source: '', destination } }, tree, writer);
    return pathsIn(tree.root);
  } finally {
    closeSync(output);
    rmSync(dir, { recursive: true });
  }
}

const pathsIn = ({ entries }: DirectoryNode): string[] =>
  [...entries].flatMap(([name, node]) =>
    node.kind === 'directory' ? pathsIn(node).map(below => `${name}/${below}`) : [name],
  );

test('a file whose name holds glob characters is copied to the name that was asked for', async () => {
  expect(await copied(['{id}.txt'], ['{id}.txt'], '/new.txt')).toEqual(['new.txt']);
  expect(await copied(['page[id].txt'], ['page[[]id].txt'], '/new.txt')).toEqual(['new.txt']);
  expect(await copied(['a*b'], ['a\\*b'], '/folder/')).toEqual(['folder/a*b']);
});

test('patterns are those of Docker: braces and an exclamation mark mean themselves', async () => {
  expect(await copied(['{a,b}.txt', 'a.txt'], ['{a,b}*'], '/new/')).toEqual(['new/{a,b}.txt']);
  expect(await copied(['!x', 'y'], ['!*'], '/new')).toEqual(['new']);
  expect(await copied(['a', 'b', 'c'], ['[^a]'], '/new/')).toEqual(['new/b', 'new/c']);
});
