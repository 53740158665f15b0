import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import type { Helper } from '../native/helper.ts';
import { requireRoom } from '../../base/disk-room.ts';
import { Reservations } from '../space/reservations.ts';
import { layerExchange } from './exchange.ts';
import { openLayerCache } from './shared-cache.ts';
import { createLayers, type Layers } from './store.ts';

const digestOf = (bytes: string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** A disk with this many free bytes, minus those that were promised. */
function diskOf(freeBytes: number) {
  const reservations = new Reservations();
  const reserve = (what: string, bytes: number) => {
    requireRoom(what, { freeBytes: freeBytes - reservations.bytes, reserveBytes: 100, bytes });
    return reservations.add(bytes);
  };
  return { reserve, reservations };
}

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
    const exchange = layerExchange(layers, diskOf(1_000), openLayerCache(cacheDir, layers));
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

test('the bytes of a layer in the cache are looked at once, and again when its file is another', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-exchange-'));
  try {
    const cacheDir = join(folder, 'cache');
    mkdirSync(cacheDir);
    const digest = digestOf('whole');
    const image = join(cacheDir, `${digest.replace(':', '-')}.erofs`);
    writeFileSync(image, 'whole');
    const writtenAt = new Date(Date.now() - 60_000);
    utimesSync(image, writtenAt, writtenAt);
    const taken = async (installation: string) => {
      const helper = {} as Helper;
      const layers = createLayers({ helper, dir: join(folder, installation), mounts: join(folder, 'mounts') });
      return openLayerCache(cacheDir, layers).takeLayer(digest);
    };
    expect(await taken('first')).toBe(true);
    // In practice nobody writes into it and resets its time: this stands for a file that is not read again.
    writeFileSync(image, 'other');
    utimesSync(image, writtenAt, writtenAt);
    expect(await taken('second')).toBe(true);
    for (const bytes of ['wh', 'other']) {
      rmSync(image);
      writeFileSync(image, bytes);
      expect(await taken('third')).toBe(false);
    }
    // A node that already has the layer ignores the file in the cache.
    expect(await taken('first')).toBe(true);
    expect(await taken('third')).toBe(false);
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
  const disk = diskOf(1_000);
  try {
    const exchange = layerExchange(layers as unknown as Layers, disk, { takeLayer: async () => false });
    for (let count = 0; count < 20; count++)
      await expect(exchange.openWrite(digestOf('a'), 1)).rejects.toMatchObject({ code: 'no_space' });
    isFull = false;
    const { writeId, descriptor } = await exchange.openWrite(digestOf('a'), 1);
    closeSync(descriptor);
    await exchange.dropWrite(writeId);
    expect(disk.reservations.bytes).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('layers that come at the same time are promised no byte twice, and no more come than may', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-exchange-'));
  try {
    const layers = createLayers({ helper: {} as Helper, dir: join(folder, 'layers'), mounts: join(folder, 'mounts') });
    const disk = diskOf(1_000);
    const exchange = layerExchange(layers, disk, { takeLayer: async () => false });
    const ask = (sizes: number[]) =>
      Promise.allSettled(sizes.map((bytes, index) => exchange.openWrite(digestOf(`${index}`), bytes)));
    const begun = (outcomes: Awaited<ReturnType<typeof ask>>) =>
      outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    const large = await ask([600, 600, 300]);
    expect(large.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(large[1]).toMatchObject({ reason: { code: 'no_space', detail: 'disk_reserve' } });
    const many = await ask(Array.from({ length: 20 }, () => 0));
    expect(begun(many)).toHaveLength(14);
    for (const { writeId, descriptor } of [...begun(large), ...begun(many)]) {
      closeSync(descriptor);
      await exchange.dropWrite(writeId);
    }
    expect(disk.reservations.bytes).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the part of a layer that has arrived counts only as space on the disk', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-exchange-'));
  try {
    const layers = createLayers({ helper: {} as Helper, dir: join(folder, 'layers'), mounts: join(folder, 'mounts') });
    const disk = diskOf(4 << 20);
    const exchange = layerExchange(layers, disk, { takeLayer: async () => false });
    const { writeId, descriptor } = await exchange.openWrite(digestOf('a'), 1 << 20);
    writeSync(descriptor, Buffer.alloc(1 << 20, 1));
    closeSync(descriptor);
    while (disk.reservations.bytes > 0) await Bun.sleep(20);
    await exchange.dropWrite(writeId);
    expect(disk.reservations.bytes).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
