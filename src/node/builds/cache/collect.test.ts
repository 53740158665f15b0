import { expect, setSystemTime, beforeEach, afterEach, test } from 'bun:test';
import { collectCached, type CollectParts } from './collect.ts';
import type { StepCache } from './step-cache.ts';

const now = Date.UTC(2026, 0, 1);
const [minute, hour, day] = [60_000, 60 * 60_000, 24 * 60 * 60_000];
beforeEach(() => void setSystemTime(now));
afterEach(() => void setSystemTime());

type Layer = { bytes?: number; made?: number; used?: number };
type Step = { key: string; layer: string | null; used?: number };

/**
 * A node with layers, cached steps and files. They are given by when they were made and last used, in ms before now;
 * by default they are old enough for everything.
 */
function node({
  layers = {},
  steps = [],
  files = {},
  sandboxes = [],
  hasUnknown = false,
}: {
  layers?: Record<string, Layer>;
  steps?: Step[];
  files?: Record<string, { bytes: number; used?: number }>;
  sandboxes?: string[][];
  hasUnknown?: boolean;
}) {
  const there = new Map(Object.entries(layers));
  const stepsLeft = new Map(steps.map(step => [step.key, step]));
  const filesLeft = new Set(Object.keys(files));
  const parts: CollectParts = {
    layers: {
      has: digest => there.has(digest),
      bytes: digest => there.get(digest)?.bytes ?? 10,
      list: () => [...there.keys()],
      madeAtMs: digest => now - (there.get(digest)?.made ?? 2 * hour),
      usedAtMs: digest => now - (there.get(digest)?.used ?? hour),
      remove: async digest => void there.delete(digest),
    },
    sandboxes: { records: () => sandboxes.map(layers => ({ image: { layers } })), hasUnknown: () => hasUnknown },
  };
  const cache = {
    list: () => [...stepsLeft.values()].map(({ key, layer, used = hour }) => ({ key, layer, usedAtMs: now - used })),
    remove: (key: string) => void stepsLeft.delete(key),
  } as unknown as StepCache;
  const collect = (options: Partial<Parameters<typeof collectCached>[2]> = {}) =>
    collectCached(parts, cache, {
      ...{ keep: [], needed: [], bytesMax: 1000, buildingSinceMs: undefined, replaceable: [], layerBytesMax: Infinity },
      files: [...filesLeft].map(name => ({
        bytes: files[name]?.bytes ?? 0,
        usedAtMs: now - (files[name]?.used ?? hour),
        remove: () => void filesLeft.delete(name),
      })),
      ...options,
    });
  const left = () => [...there.keys(), ...stepsLeft.keys(), ...filesLeft].sort().join(' ');
  return { collect, left };
}

test('layers that nothing needs go, and what templates, builds, sandboxes and steps stand on stays', async () => {
  const { collect, left } = node({
    layers: { template: {}, building: {}, sandbox: {}, step: {}, nobodys: { bytes: 7 } },
    steps: [{ key: 'S', layer: 'step' }],
    sandboxes: [['sandbox']],
  });
  const freed = await collect({ keep: ['template'], needed: ['building'] });
  expect(left()).toBe('S building sandbox step template');
  expect(freed).toEqual({ layersDeleted: 1, filesDeleted: 0, bytesFreed: 7 });
});

test('a layer not an hour old, or younger than the oldest build under way, may be about to be recorded', async () => {
  const { collect, left } = node({
    layers: { young: { made: hour - 1 }, old: { made: hour }, older: { made: 2 * hour } },
  });
  await collect({ buildingSinceMs: now - 2 * hour });
  expect(left()).toBe('old young');
  await collect();
  expect(left()).toBe('young');
});

test('no layer is deleted while the layers of some sandbox are unknown, but cached files are', async () => {
  const { collect, left } = node({ layers: { nobodys: {} }, files: { F: { bytes: 5 } }, hasUnknown: true });
  expect(await collect({ bytesMax: 4 })).toEqual({ layersDeleted: 0, filesDeleted: 1, bytesFreed: 5 });
  expect(left()).toBe('nobodys');
});

test('beyond the bound, the least recently used is deleted, steps together with their layers', async () => {
  const { collect, left } = node({
    layers: { a: {}, b: {}, c: {} },
    steps: [
      { key: 'A', layer: 'a', used: 50 * minute },
      { key: 'B', layer: 'b', used: 30 * minute },
      { key: 'C', layer: 'c', used: 20 * minute },
    ],
    files: { F: { bytes: 10, used: 40 * minute } },
  });
  expect(await collect({ bytesMax: 30 })).toEqual({ layersDeleted: 1, filesDeleted: 0, bytesFreed: 10 });
  expect(left()).toBe('B C F b c');
  expect(await collect({ bytesMax: 29 })).toEqual({ layersDeleted: 0, filesDeleted: 1, bytesFreed: 10 });
  expect(left()).toBe('B C b c');
});

test('steps without a layer, on layers that are needed anyway, and on one layer count nothing, or once', async () => {
  const { collect, left } = node({
    layers: { needed: {}, one: {} },
    steps: [
      { key: 'A', layer: null },
      { key: 'B', layer: 'needed' },
      { key: 'C', layer: 'one', used: 30 * minute },
      { key: 'D', layer: 'one', used: 40 * minute },
    ],
  });
  await collect({ keep: ['needed'], bytesMax: 10 });
  expect(left()).toBe('A B C D needed one');
  await collect({ keep: ['needed'], bytesMax: 9 });
  expect(left()).toBe('A B needed');
});

test('what was used in the last ten minutes, or since the oldest build under way began, is left alone', async () => {
  const { collect, left } = node({
    layers: { a: {}, b: {} },
    steps: [
      { key: 'A', layer: 'a', used: 10 * minute },
      { key: 'B', layer: 'b', used: 10 * minute + 1 },
    ],
    files: { F: { bytes: 5, used: 5 * minute } },
  });
  await collect({ bytesMax: 0, buildingSinceMs: now - 20 * minute });
  expect(left()).toBe('A B F a b');
  await collect({ bytesMax: 0 });
  expect(left()).toBe('A F a');
});

test('a step that nobody used for thirty days, or whose layer is gone, is forgotten though there is room', async () => {
  const { collect, left } = node({
    layers: { a: {}, b: {} },
    steps: [
      { key: 'A', layer: 'a', used: 30 * day },
      { key: 'B', layer: 'b', used: 30 * day + 1 },
      { key: 'C', layer: 'gone' },
      { key: 'D', layer: null, used: 31 * day },
    ],
    files: { F: { bytes: 1, used: 31 * day } },
  });
  await collect();
  expect(left()).toBe('A a');
});

test('layers that can be had again make room for others, the least recently used first, and no more', async () => {
  const { collect, left } = node({
    layers: { a: { used: 40 * minute }, b: { used: 30 * minute }, c: { used: 20 * minute }, other: {} },
  });
  const keep = ['a', 'b', 'c', 'other'];
  const replaceable = ['c', 'b', 'a', 'a', 'gone'];
  await collect({ keep, replaceable, layerBytesMax: 40 });
  expect(left()).toBe('a b c other');
  expect(await collect({ keep, replaceable, layerBytesMax: 20 })).toMatchObject({ layersDeleted: 2, bytesFreed: 20 });
  expect(left()).toBe('c other');
});

test('a layer that can be had again stays while a sandbox, build or step has it, or it was just used', async () => {
  const { collect, left } = node({
    layers: { sandbox: {}, building: {}, step: {}, used: { used: 10 * minute - 1 } },
    steps: [{ key: 'S', layer: 'step' }],
    sandboxes: [['sandbox']],
  });
  const all = ['sandbox', 'building', 'step', 'used'];
  await collect({ keep: ['used'], needed: ['building'], replaceable: all, layerBytesMax: 0 });
  expect(left()).toBe('S building sandbox step used');
});
