import { afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buildAgent } from '../../scripts/setup/agent.mjs';
import { Inotify } from '../../src/agent/filesystem/watch/inotify.ts';
import { TreeWatch } from '../../src/agent/filesystem/watch/tree-watch.ts';
import { openNative } from '../../src/agent/native.ts';

const repository = resolve(import.meta.dir, '../..');
let root = '';

beforeAll(() => buildAgent(repository));
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'atoll-slow-watch-'))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A watch of `root` whose listener takes `room` events, and as many again each time it catches up. */
async function slowWatch(room: number) {
  const taken: string[] = [];
  let left = room;
  let isFull = Promise.withResolvers<void>();
  const watch = new TreeWatch(new Inotify(openNative(), join(repository, 'dist/agent/init')), root, true, {
    report({ name, type }) {
      if (left === 0) isFull.resolve();
      if (left === 0) return false;
      left--;
      taken.push(`${type} ${name}`);
      return true;
    },
    fail(error) {
      throw error;
    },
  });
  await watch.arm();
  return {
    taken,
    watch,
    full: () => isFull.promise,
    catchUp() {
      left = room;
      isFull = Promise.withResolvers();
      watch.catchUp();
    },
    [Symbol.dispose]: () => watch.close(),
  };
}

const files = Array.from({ length: 100 }, (_, index) => `file-${index}`);
const created = (name: string) => `EVENT_TYPE_CREATE ${name}`;

async function catchUpWith(slow: Awaited<ReturnType<typeof slowWatch>>, names: string[]): Promise<void> {
  for (let time = 0; time < 60 && !names.every(name => slow.taken.includes(created(name))); time++) {
    slow.catchUp();
    await slow.watch.settle();
  }
  expect(names.filter(name => !slow.taken.includes(created(name)))).toEqual([]);
}

test('who reads more slowly than files come gets each of them, and not the same ones for ever', async () => {
  using slow = await slowWatch(10);
  for (const name of files) writeFileSync(join(root, name), '');
  await slow.full();
  await catchUpWith(slow, files);
  // Once from the kernel or from the rescan, and a second time if a change is as recent as the clock is coarse.
  for (const name of files) expect(slow.taken.filter(event => event === created(name)).length).toBeLessThanOrEqual(2);
});

test('what comes while a look waits for its reader is found by the next look', async () => {
  using slow = await slowWatch(10);
  for (const name of files) writeFileSync(join(root, name), '');
  await slow.full();
  slow.catchUp();
  await slow.full();
  // A window that is longer than the slack for the clock of the file system: these come after the look has begun.
  await Bun.sleep(250);
  const later = ['later-0', 'later-1'];
  for (const name of later) writeFileSync(join(root, name), '');
  await catchUpWith(slow, [...files, ...later]);
});

test('what a new directory holds waits for its reader', async () => {
  using slow = await slowWatch(10);
  mkdirSync(join(root, 'new/folder'), { recursive: true });
  for (const name of files) writeFileSync(join(root, 'new/folder', name), '');
  await slow.full();
  await catchUpWith(
    slow,
    files.map(name => `new/folder/${name}`),
  );
});
