import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import type { Helper } from '../native/helper.ts';
import { layerExchange } from './exchange.ts';
import { openLayerCache } from './shared-cache.ts';
import { createLayers, type Layers } from './store.ts';

const digestOf = (bytes: string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

test('a layer that the cache of the machine has is not missing, and one that it has with other bytes is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-exchange-'));
  try {
    const cacheDir = join(folder, 'cache');
    mkdirSync(cacheDir);
    const [whole, damaged, nowhere] = ['whole', 'damaged', 'nowhere'].map(digestOf) as [string, string, string];
    const inCache = (digest: string, bytes: string) =>
      writeFileSync(join(cacheDir, `${digest.replace(':', '-')}.erofs`), bytes);
    inCache(whole, 'whole');
    inCache(damaged, 'cut sho');
    const layers = createLayers({ helper: {} as Helper, dir: join(folder, 'layers'), mounts: join(folder, 'mounts') });
    const exchange = layerExchange(layers, folder, openLayerCache(cacheDir, layers));
    // Two that ask at the same moment take it once.
    const all = [whole, damaged, nowhere];
    expect(await Promise.all([exchange.missing(all), exchange.missing(all)])).toEqual([
      [damaged, nowhere],
      [damaged, nowhere],
    ]);
    expect(layers.list()).toEqual([whole]);
    expect(await exchange.bytes(whole)).toBe('whole'.length);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('layers that can not begin to come take no places of those that can', async () => {
  const full = new AtollError('no_space', 'full');
  let isFull = true;
  const layers = {
    make: (write: (image: string) => Promise<string | null>) =>
      isFull ? Promise.reject(full) : write(join(folder, 'image')),
  };
  const folder = mkdtempSync(join(tmpdir(), 'atoll-exchange-'));
  try {
    const exchange = layerExchange(layers as unknown as Layers, folder, { takeLayer: async () => false });
    for (let count = 0; count < 20; count++)
      await expect(exchange.openWrite(digestOf('a'), 1)).rejects.toMatchObject({ code: 'no_space' });
    isFull = false;
    const { writeId, descriptor } = await exchange.openWrite(digestOf('a'), 1);
    closeSync(descriptor);
    await exchange.dropWrite(writeId);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
