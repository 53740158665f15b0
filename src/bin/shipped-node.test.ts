import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLayerCache } from '../node/layers/shared-cache.ts';
import type { Layers } from '../node/layers/store.ts';
import { shippedOnNode } from './shipped-node.ts';

test('who waited for a template while another api began with it never has it: the newest one does', async () => {
  const cacheDir = mkdtempSync(join(tmpdir(), 'atoll-shipped-'));
  try {
    const layers = {} as Layers;
    const settings = { baseImage: undefined, buildAuthorities: '', templateParts: [] };
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
