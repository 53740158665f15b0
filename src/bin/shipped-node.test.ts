import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLayerCache } from '../node/layers/shared-cache.ts';
import type { Helper } from '../node/native/helper.ts';
import { createLayers, type Layers } from '../node/layers/store.ts';
import { shippedOnNode } from './shipped-node.ts';

const settings = { baseImage: undefined, buildAuthorities: '', templateParts: [] };

test('who waited for a template while another api began with it never has it: the newest one does', async () => {
  const cacheDir = mkdtempSync(join(tmpdir(), 'atoll-shipped-'));
  try {
    const layers = {} as Layers;
    const node = shippedOnNode({
      layers,
      cache: openLayerCache(cacheDir, layers),
      settings,
      environment: {},
      onPhase: () => {},
    });
    const elsewhere = await openLayerCache(cacheDir, layers).lock('base', () => {}, undefined);
    const gone = node.begin('base', 'key').then(
      () => 'begun',
      (error: Error) => error.message,
    );
    const newest = node.begin('base', 'key');
    elsewhere[Symbol.dispose]();
    expect(await newest).toBeNull();
    expect(await gone).toContain('another api has begun');
    await node.end('base', 'key', null);
    (await openLayerCache(cacheDir, layers).lock('base', () => {}, AbortSignal.timeout(5_000)))[Symbol.dispose]();
  } finally {
    rmSync(cacheDir, { recursive: true });
  }
});

test('an api that was taken over reaches nothing outside of the cache by the name of an entry or a layer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-shipped-'));
  try {
    const layers = createLayers({ helper: {} as Helper, dir: join(folder, 'layers'), mounts: join(folder, 'mounts') });
    const cache = openLayerCache(join(folder, 'cache'), layers);
    const node = shippedOnNode({ layers, cache, settings, environment: {}, onPhase: () => {} });
    mkdirSync(join(folder, 'etc'));
    writeFileSync(join(folder, 'etc/kept.erofs'), 'kept');
    const state = { layers: [], env: {}, user: '', workdir: '' };
    await expect(node.end('base', '/../../etc/written', state)).rejects.toMatchObject({ code: 'invalid' });
    await expect(node.begin('base', '/../../etc/written')).rejects.toMatchObject({ code: 'invalid' });
    for (const layer of ['../etc/kept', 'sha256:/../../etc/kept'])
      await expect(node.end('base', 'key', { ...state, layers: [layer] })).rejects.toMatchObject({ code: 'invalid' });
    expect(readdirSync(join(folder, 'etc'))).toEqual(['kept.erofs']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
