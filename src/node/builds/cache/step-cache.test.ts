import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepCache } from './step-cache.ts';

let dir: string;
let layers: Set<string>;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-steps-'));
  layers = new Set();
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const open = () => createStepCache(dir, layer => layers.has(layer));
function ask(cache: ReturnType<typeof open>, facts: unknown, make: () => Promise<string | null>, force = false) {
  const hits: boolean[] = [];
  return cache
    .get(facts, { force, onHit: () => hits.push(true), make })
    .then(layer => ({ layer, hit: hits.length === 1 }));
}
const making = (layer: string | null) => async () => {
  if (layer !== null) layers.add(layer);
  return layer;
};
const never = async (): Promise<never> => {
  throw new Error('made again');
};

test('a step is made once for its facts, by any process', async () => {
  expect(await ask(open(), ['a', 1], making('l1'))).toEqual({ layer: 'l1', hit: false });
  expect(await ask(open(), ['a', 1], never)).toEqual({ layer: 'l1', hit: true });
  expect(await ask(open(), ['a', 2], making(null))).toEqual({ layer: null, hit: false });
  expect(await ask(open(), ['a', 2], never)).toEqual({ layer: null, hit: true });
});

test('by force it is made again, and known from then on', async () => {
  const cache = open();
  await ask(cache, 'x', making('old'));
  expect(await ask(cache, 'x', making('new'), true)).toEqual({ layer: 'new', hit: false });
  expect(await ask(cache, 'x', never)).toEqual({ layer: 'new', hit: true });
});

test('a build that asks meanwhile waits; if the step fails, it is the next one’s turn', async () => {
  const cache = open();
  const first = Promise.withResolvers<string>();
  const failing = ask(cache, 'x', () => first.promise);
  const waiting = [ask(cache, 'x', making('second')), ask(cache, 'x', making('third'))];
  first.reject(new Error('cancelled'));
  await expect(failing).rejects.toThrow('cancelled');
  const outcomes = await Promise.all(waiting);
  expect(outcomes.map(({ layer }) => layer)).toEqual(['second', 'second']);
  expect(outcomes.filter(({ hit }) => hit)).toHaveLength(1);
});

test('a build with another source is not kept waiting, and one that is given up stops waiting', async () => {
  const cache = open();
  const slow = Promise.withResolvers<string>();
  const get = (source: string, make: () => Promise<string | null>, signal?: AbortSignal) =>
    cache.get('x', { force: false, source, onHit() {}, make, ...(signal && { signal }) });
  const first = get('slow.test', () => slow.promise);
  const givenUp = new AbortController();
  const waiting = get('slow.test', never, givenUp.signal);
  expect(await get('fast.test', making('l'))).toBe('l');
  givenUp.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'canceled' });
  // Once the outcome is known, every build has it.
  slow.reject(new Error('gone'));
  await expect(first).rejects.toThrow('gone');
  expect(await get('slow.test', never)).toBe('l');
});

test('an outcome that serves nobody else is not kept, and builds that waited for it get a turn', async () => {
  const cache = open();
  const first = Promise.withResolvers<string>();
  const get = (make: () => Promise<string | null>) =>
    cache.get('x', { force: false, onHit() {}, make, lasts: async layer => layer === 'whole' });
  const asked = [get(() => first.promise), get(making('broken')), get(making('whole')), get(never)];
  first.resolve('broken');
  expect(await Promise.all(asked)).toEqual(['broken', 'broken', 'whole', 'whole']);
  expect(await get(never)).toBe('whole');
});

test('a layer that is gone, and an entry that a crash left half written, are made again', async () => {
  const cache = open();
  await ask(cache, 'x', making('l'));
  layers.clear();
  expect((await ask(cache, 'x', making('l2'))).hit).toBe(false);
  const [entry = ''] = readdirSync(dir);
  writeFileSync(join(dir, entry), '{"lay');
  expect((await ask(cache, 'x', making('l3'))).hit).toBe(false);
  expect(cache.list()).toMatchObject([{ layer: 'l3' }]);
});

test('the outcome of another machine is taken if its layer is here, and known from then on', async () => {
  const cache = open();
  const asked: string[] = [];
  const made: string[] = [];
  const get = (facts: unknown, told: { layer: string | null } | undefined, make: () => Promise<string | null>) => {
    const ask = async (key: string) => {
      asked.push(key);
      return told;
    };
    return cache.get(facts, { force: false, onHit() {}, make, ask, onMade: ({ key }) => void made.push(key) });
  };
  layers.add('brought');
  expect(await get('a', { layer: 'brought' }, never)).toBe('brought');
  expect(await get('a', undefined, never)).toBe('brought');
  expect(await get('b', { layer: null }, never)).toBe(null);
  // If the answer is a layer that is not here, or there is no answer, the step is carried out and others are told.
  expect(await get('c', { layer: 'elsewhere' }, making('own'))).toBe('own');
  expect(await get('d', undefined, making(null))).toBe(null);
  expect(asked).toHaveLength(4);
  expect(made).toEqual(asked.slice(2));
});
