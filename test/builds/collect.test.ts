import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collectLayers } from '../../src/node/builds/collect.ts';
import { createStepCache } from '../../src/node/builds/step-cache.ts';
import type { NodeContext } from '../../src/node/context.ts';

const hour = 60 * 60_000;
let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-collect-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** A store of layers of 100 bytes each, all made long ago but those that are named young. */
function store(names: string[], young: string[] = []) {
  const there = new Set(names);
  const layers = {
    has: (name: string) => there.has(name),
    list: () => [...there],
    bytes: () => 100,
    madeAtMs: (name: string) => (young.includes(name) ? Date.now() : Date.now() - 2 * hour),
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

const nodeWith = (layers: unknown, used: string[] = []) =>
  ({ layers, running: new Map(used.map(layer => [layer, { record: { image: { layers: [layer] } } }])), paused: new Map() }) as unknown as NodeContext;

test('what nothing needs goes; templates, sandboxes and the cache keep theirs', async () => {
  const { there, layers } = store(['template', 'sandbox', 'cached', 'orphan', 'young'], ['young']);
  const cache = await cacheOf('needs', layers, ['cached']);
  const freed = await collectLayers(nodeWith(layers, ['sandbox']), cache, { keep: ['template'], bytesMax: 1000, mayDelete: () => true });
  expect(freed).toEqual({ layersDeleted: 1, bytesFreed: 100 });
  expect([...there].sort()).toEqual(['cached', 'sandbox', 'template', 'young']);
});

test('over its bound, the cache forgets what was used longest ago', async () => {
  const { there, layers } = store(['new', 'middle', 'old', 'kept']);
  const cache = await cacheOf('bound', layers, ['new', 'middle', 'old', 'kept']);
  await collectLayers(nodeWith(layers), cache, { keep: ['kept'], bytesMax: 200, mayDelete: () => true });
  expect([...there].sort()).toEqual(['kept', 'middle', 'new']);
  expect(cache.list().map(step => step.layer).sort()).toEqual(['kept', 'middle', 'new']);
});

test('while builds run, nothing goes', async () => {
  const { there, layers } = store(['orphan']);
  const cache = await cacheOf('busy', layers, []);
  await collectLayers(nodeWith(layers), cache, { keep: [], bytesMax: 0, mayDelete: () => false });
  expect([...there]).toEqual(['orphan']);
});
