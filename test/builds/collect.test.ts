import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cachedFilesOf } from '../../src/node/builds/cache/cached-files.ts';
import { collectCached } from '../../src/node/builds/cache/collect.ts';
import { createStepCache } from '../../src/node/builds/cache/step-cache.ts';

const hour = 60 * 60_000;
let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-collect-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** A store of layers of 100 bytes each, all of them old except those named as young. */
function store(names: string[], young: string[] = []) {
  const there = new Set(names);
  const layers = {
    has: (name: string) => there.has(name),
    list: () => [...there],
    bytes: () => 100,
    madeAtMs: (name: string) => (young.includes(name) ? Date.now() : Date.now() - 2 * hour),
    // In the order of their names; the last one was used most recently.
    usedAtMs: (name: string) =>
      Date.now() - (young.includes(name) ? 0 : (1 + names.length - names.indexOf(name)) * hour),
    remove: async (name: string) => void there.delete(name),
  };
  return { there, layers };
}

async function cacheOf(name: string, layers: { has(layer: string): boolean }, steps: string[]) {
  const folder = join(dir, name);
  mkdirSync(folder);
  const cache = createStepCache(folder, layers.has);
  for (const [age, layer] of steps.entries()) {
    await cache.get(layer, { force: false, onHit: () => {}, make: async () => layer });
    const entry = cache.list().find(step => step.layer === layer);
    const usedAt = new Date(Date.now() - age * hour);
    utimesSync(join(folder, `${entry?.key}.json`), usedAt, usedAt);
  }
  return cache;
}

/** No build runs, nothing is cached in files, and no layer is available elsewhere. */
const alone = { needed: [], replaceable: [], layerBytesMax: 0 };
const quiet = { buildingSinceMs: undefined, files: [], ...alone };

/** Layers, and sandboxes that are based on some of them. */
const nodeWith = (layers: ReturnType<typeof store>['layers'], used: string[] = []) => ({
  layers,
  sandboxes: { records: () => used.map(layer => ({ image: { layers: [layer] } })), hasUnknown: () => false },
});

test('what nothing needs goes; templates, sandboxes and the cache keep theirs', async () => {
  const { there, layers } = store(['template', 'sandbox', 'cached', 'orphan', 'young'], ['young']);
  const cache = await cacheOf('needs', layers, ['cached']);
  const freed = await collectCached(nodeWith(layers, ['sandbox']), cache, {
    keep: ['template'],
    bytesMax: 1000,
    ...quiet,
  });
  expect(freed).toEqual({ layersDeleted: 1, filesDeleted: 0, bytesFreed: 100 });
  expect([...there].sort()).toEqual(['cached', 'sandbox', 'template', 'young']);
});

test('over its bound, the cache forgets what was used longest ago', async () => {
  const { there, layers } = store(['new', 'middle', 'old', 'kept']);
  const cache = await cacheOf('bound', layers, ['new', 'middle', 'old', 'kept']);
  await collectCached(nodeWith(layers), cache, { keep: ['kept'], bytesMax: 200, ...quiet });
  expect([...there].sort()).toEqual(['kept', 'middle', 'new']);
  expect(
    cache
      .list()
      .map(step => step.layer)
      .sort(),
  ).toEqual(['kept', 'middle', 'new']);
});

test('what running builds stand on stays: what they name, and what was made or used since the oldest began', async () => {
  const { there, layers } = store(['named', 'used', 'older', 'orphan', 'made'], ['made']);
  const cache = await cacheOf('busy', layers, ['made', 'used', 'older']);
  await collectCached(nodeWith(layers), cache, {
    keep: ['named'],
    bytesMax: 0,
    buildingSinceMs: Date.now() - 1.5 * hour,
    files: [],
    ...alone,
  });
  expect([...there].sort()).toEqual(['made', 'named', 'used']);
});

test('cache mounts and uploads share the bound with steps; what a build may just be using stays', async () => {
  const { there, layers } = store(['middle']);
  const cache = await cacheOf('files', layers, ['middle']);
  utimesSync(
    join(dir, 'files', `${cache.list()[0]?.key}.json`),
    new Date(Date.now() - 2 * hour),
    new Date(Date.now() - 2 * hour),
  );
  const data = join(dir, 'data');
  const uploads = join(dir, 'uploads');
  const write = (path: string, ageMs: number) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, Buffer.alloc(4096, 1));
    utimesSync(path, new Date(Date.now() - ageMs), new Date(Date.now() - ageMs));
  };
  const mount = join(data, 'build-mounts', `${'a'.repeat(32)}.img`);
  const [fresh, old] = ['b', 'c'].map(letter => join(uploads, 'team', letter.repeat(64))) as [string, string];
  const unfinished = join(uploads, 'team', `${'d'.repeat(64)}.0f0f`);
  write(mount, hour);
  write(fresh, 0);
  write(old, 3 * hour);
  write(unfinished, 25 * hour);
  const node = { ...nodeWith(layers), layout: { data } };
  const options = { ...alone, keep: [], buildingSinceMs: undefined };
  await collectCached(node, cache, { ...options, bytesMax: 3 * 4096, files: cachedFilesOf({ data }, uploads) });
  expect([fresh, mount, old, unfinished].map(existsSync)).toEqual([true, true, false, false]);
  expect([...there]).toEqual(['middle']);
  await collectCached(node, cache, { ...options, bytesMax: 0, files: cachedFilesOf({ data }, uploads) });
  expect([fresh, mount].map(existsSync)).toEqual([true, false]);
  expect([...there]).toEqual([]);
});

test('of layers that the store has too, the least recently used leave when all take too much', async () => {
  const names = ['oldest', 'only here', 'sandbox', 'building', 'cached', 'older', 'newer', 'asked for'];
  const { there, layers } = store(names, ['asked for']);
  const cache = await cacheOf('leave', layers, ['cached']);
  const collect = (layerBytesMax: number) =>
    collectCached(nodeWith(layers, ['sandbox']), cache, {
      ...quiet,
      keep: names.filter(name => name !== 'cached'),
      needed: ['building'],
      replaceable: names.filter(name => name !== 'only here'),
      bytesMax: 1000,
      layerBytesMax,
    });
  expect(await collect(800)).toEqual({ layersDeleted: 0, filesDeleted: 0, bytesFreed: 0 });
  expect(await collect(700)).toEqual({ layersDeleted: 1, filesDeleted: 0, bytesFreed: 100 });
  expect([...there]).not.toContain('oldest');
  // Layers that nobody else has, and those in use or about to be, stay in any case.
  await collect(0);
  expect([...there]).toEqual(['only here', 'sandbox', 'building', 'cached', 'asked for']);
});
