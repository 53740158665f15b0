import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nameIn, newNode, type TreeNode } from './tree-node.ts';
import { rescan } from './rescan.ts';

let folder = '';
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'rescan-'))));
afterEach(() => rmSync(folder, { recursive: true }));

/** Times long before and long after anything the test does, epoch milliseconds. */
const [never, always] = [Date.now() + 3_600_000, 0];

/** A tree that watches these directories below the folder. */
function watched(...names: string[]) {
  const root = newNode('', undefined);
  const add = (parent: TreeNode, name: string) => {
    const node = newNode(name, parent);
    parent.children.set(name, node);
    return node;
  };
  for (const name of names)
    name.split('/').reduce((parent, part) => parent.children.get(part) ?? add(parent, part), root);
  const replaced = new Set<string>();
  const forgotten: string[] = [];
  const gone = new Set<string>();
  const look = async (sinceMs: number, isRecursive = true) => {
    const events: string[] = [];
    await rescan(
      {
        ...{ root, isRecursive },
        pathOf: node => Buffer.from(join(folder, nameIn(node))),
        add: (parent, name) => Promise.resolve(gone.has(name) ? undefined : add(parent, name)),
        isInPlace: node => !replaced.has(nameIn(node)),
        forget(node) {
          forgotten.push(nameIn(node));
          node.parent?.children.delete(node.name);
        },
        report: ({ name, type }) => Promise.resolve(void events.push(`${type.replace('EVENT_TYPE_', '')} ${name}`)),
      },
      sinceMs,
    );
    return events.sort();
  };
  return { look, replaced, forgotten, gone };
}
const file = (name: string, content = 'x') => writeFileSync(join(folder, name), content);
const directory = (name: string) => mkdirSync(join(folder, name));

test('where nothing has changed, nothing is reported', async () => {
  directory('a');
  file('a/b');
  const { look, forgotten } = watched('a');
  expect([await look(never), forgotten]).toEqual([[], []]);
});

test('a new entry is reported with its content, and so is the change of its directory', async () => {
  directory('a');
  file('a/full');
  file('a/empty', '');
  expect(await watched().look(always)).toEqual([
    'CREATE a',
    'CREATE a/empty',
    'CREATE a/full',
    'WRITE .',
    'WRITE a',
    'WRITE a/full',
  ]);
});

test('below a directory nothing is looked at where the watch is not for all of the tree', async () => {
  directory('a');
  file('a/b');
  expect(await watched().look(always, false)).toEqual(['CREATE a', 'WRITE .', 'WRITE a']);
});

test('a directory that is gone before it can be watched is not looked into', async () => {
  directory('a');
  file('a/b');
  const { look, gone } = watched();
  gone.add('a');
  expect(await look(always)).toEqual(['CREATE a', 'WRITE .']);
});

test('a watched directory that is gone, or is no directory any more, is forgotten', async () => {
  directory('keeps');
  file('file');
  const { look, forgotten } = watched('keeps', 'went', 'file');
  expect(await look(never)).toEqual(['CREATE file', 'REMOVE file', 'REMOVE went']);
  expect(forgotten.sort()).toEqual(['file', 'went']);
});

test('another directory in the place of a watched one is a new one', async () => {
  directory('a');
  directory('a/b');
  const { look, replaced, forgotten } = watched('a/b');
  replaced.add('a');
  expect(await look(never)).toEqual(['CREATE a', 'REMOVE a']);
  expect(forgotten).toEqual(['a']);
});

test('a link is an entry of its own, and is not followed', async () => {
  directory('a');
  symlinkSync('a', join(folder, 'link'));
  const { look } = watched('a');
  expect(await look(always)).toContain('CREATE link');
  expect(await look(never)).toEqual([]);
});

test('a tree that is gone has nothing to report', async () => {
  const { look } = watched('a');
  rmSync(folder, { recursive: true });
  expect(await look(always)).toEqual([]);
  mkdirSync(folder);
});

test('what existed before is written by its content’s time, and otherwise changed by its inode’s', async () => {
  file('written');
  file('changed');
  directory('known');
  const { look } = watched('known');
  const changed = join(folder, 'changed');
  const changedMs = () => lstatSync(changed).ctimeMs;
  // Until the file system’s clock has moved on.
  while (changedMs() <= lstatSync(join(folder, 'known')).birthtimeMs) chmodSync(changed, 0o600);
  const sinceMs = changedMs();
  const setTimes = (time: Date, ...names: string[]) =>
    names.forEach(name => utimesSync(join(folder, name), time, time));
  setTimes(new Date(1_000_000), 'changed', '.', 'known');
  setTimes(new Date(never), 'written');
  expect(await look(sinceMs)).toEqual(['CHMOD changed', 'WRITE written']);
});
