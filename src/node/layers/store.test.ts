import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Helper } from '../native/helper.ts';
import { createLayers, digestOf, linkOrCopy } from './store.ts';

let folder = '';
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-layers-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const digest = (text: string | Buffer) => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const hex = (of: string) => of.slice('sha256:'.length);

/** A store whose helper runs programs and mounts nothing. `happened` records the calls; `fails` sets which fail. */
function store() {
  const happened: string[] = [];
  const fails = new Set<string>();
  const helper = {
    async call(name: string, { at }: { at: string }) {
      await Promise.resolve();
      happened.push(`${name} ${at}`);
      if (fails.has(name)) throw new Error(`${name} failed`);
    },
    async spawn(argv: string[]) {
      const { exitCode, stdout, stderr } = Bun.spawnSync(argv);
      return { status: exitCode, output: `${stdout}${stderr}` };
    },
  };
  const dir = join(folder, 'layers');
  const layers = createLayers({ helper: helper as unknown as Helper, dir, mounts: join(folder, 'mounts') });
  /** Makes a layer of these bytes. */
  const made = (text: string) =>
    layers.make(image => {
      writeFileSync(image, text);
      return Promise.resolve(digest(text));
    });
  return { layers, happened, fails, dir, made };
}

test('a layer gets its name when it is complete, and its digest is the answer', async () => {
  const { layers, dir, made } = store();
  const before = Date.now() - 1000;
  expect(await made('a layer')).toBe(digest('a layer'));
  expect(readdirSync(dir)).toEqual([`${hex(digest('a layer'))}.erofs`]);
  expect(readFileSync(layers.imagePath(digest('a layer')), 'utf8')).toBe('a layer');
  expect(layers.has(digest('a layer'))).toBe(true);
  expect(layers.has(digest('another'))).toBe(false);
  expect(layers.bytes(digest('a layer'))).toBe(7);
  expect(layers.madeAtMs(digest('a layer'))).toBeGreaterThan(before);
  writeFileSync(join(dir, 'what-else-is-there'), '');
  expect(layers.list()).toEqual([digest('a layer')]);
  for (const no of ['sha256:ab', `${digest('x')}0`, `md5:${hex(digest('x'))}`, `sha256:${'../'.repeat(21)}a`])
    expect(() => layers.has(no)).toThrow(expect.objectContaining({ code: 'invalid' }) as Error);
});

test('an empty or failed layer leaves nothing, and leftovers of a crash are removed', async () => {
  const { layers, dir } = store();
  expect(await layers.make(() => Promise.resolve(null))).toBeNull();
  const failed = layers.make(async image => {
    writeFileSync(image, 'half of it');
    await Promise.resolve();
    throw new Error('no more');
  });
  await expect(failed).rejects.toThrow('no more');
  expect(readdirSync(dir)).toEqual([]);
  mkdirSync(join(dir, 'making-before'));
  writeFileSync(join(dir, 'making-before', 'image'), 'half of it');
  writeFileSync(join(dir, `${hex(digest('x'))}.erofs`), 'x');
  expect(store().layers.list()).toEqual([digest('x')]);
  expect(readdirSync(dir)).toHaveLength(1);
});

test('a directory is packed under the digest of its image, and a failure to do so is reported', async () => {
  const { layers, dir } = store();
  const tree = join(folder, 'tree');
  mkdirSync(tree);
  writeFileSync(join(tree, 'file'), 'content');
  const layer = await layers.pack(tree);
  expect(await digestOf(layers.imagePath(layer))).toBe(layer);
  expect(digest(readFileSync(layers.imagePath(layer)))).toBe(layer);
  // Where EROFS has its magic number (Documentation/filesystems/erofs.rst of Linux).
  expect(readFileSync(layers.imagePath(layer)).readUInt32LE(1024)).toBe(0xe0f5_e1e2);
  await expect(layers.pack(join(folder, 'missing'))).rejects.toThrow(
    expect.objectContaining({ code: 'internal', message: expect.stringContaining('mkfs.erofs failed: ') }) as Error,
  );
  expect(readdirSync(dir)).toHaveLength(1);
});

test('an image from elsewhere is taken as it is, where it is what its digest says', async () => {
  const { layers } = store();
  const image = join(folder, 'image');
  writeFileSync(image, 'from elsewhere');
  await expect(layers.take(digest('another'), image)).rejects.toThrow(
    expect.objectContaining({ code: 'invalid' }) as Error,
  );
  expect(layers.list()).toEqual([]);
  await layers.take(digest('from elsewhere'), image);
  expect(statSync(layers.imagePath(digest('from elsewhere'))).ino).toBe(statSync(image).ino);
  // The layer is already there: the file that is brought is not read.
  await layers.take(digest('from elsewhere'), join(folder, 'missing'));
  await layers.take(digest('known by others'), image, true);
  expect(layers.has(digest('known by others'))).toBe(true);
});

test('a file of another file system is copied, and a missing one is reported', async () => {
  const elsewhere = mkdtempSync('/dev/shm/atoll-layers-');
  try {
    const from = join(elsewhere, 'file');
    writeFileSync(from, 'content');
    await linkOrCopy(from, join(folder, 'copy'));
    expect(readFileSync(join(folder, 'copy'), 'utf8')).toBe('content');
    await expect(linkOrCopy(join(elsewhere, 'missing'), join(folder, 'other'))).rejects.toThrow('ENOENT');
  } finally {
    rmSync(elsewhere, { recursive: true });
  }
});

test('a layer is mounted once for all callers, and again if that failed', async () => {
  const { layers, happened, fails, made } = store();
  const layer = digest('a layer');
  await expect(layers.mount(layer)).rejects.toThrow(expect.objectContaining({ code: 'not_found' }) as Error);
  await made('a layer');
  fails.add('layer-mount');
  await expect(layers.mount(layer)).rejects.toThrow('layer-mount failed');
  fails.clear();
  const point = join(folder, 'mounts/layers', hex(layer));
  expect(await Promise.all([layers.mount(layer), layers.mount(layer)])).toEqual([point, point]);
  expect(await layers.mount(layer)).toBe(point);
  expect(happened).toEqual([`layer-mount ${point}`, `layer-mount ${point}`]);
  expect(existsSync(point)).toBe(true);
});

test('a layer counts as used when it came, when it is mounted and when somebody is about to use it', async () => {
  const { layers, made } = store();
  const layer = digest('a layer');
  await made('a layer');
  expect(layers.usedAtMs(layer)).toBe(layers.madeAtMs(layer));
  for (const use of [() => layers.touch(layer), () => layers.mount(layer)]) {
    const before = Date.now();
    await use();
    expect(layers.usedAtMs(layer)).toBeGreaterThanOrEqual(before);
    expect(layers.usedAtMs(layer)).toBeLessThanOrEqual(Date.now());
  }
  await layers.remove(layer);
  await made('a layer');
  expect(layers.usedAtMs(layer)).toBe(layers.madeAtMs(layer));
});

test('holders of a layer let it go before it is unmounted and removed', async () => {
  const { layers, happened, dir, made } = store();
  const layer = digest('a layer');
  const point = join(folder, 'mounts/layers', hex(layer));
  await made('a layer');
  await layers.mount(layer);
  for (const holder of ['first', 'second'])
    layers.beforeRemoval(async of => {
      await Promise.resolve();
      happened.push(`${holder} lets go ${layers.has(of)}`);
    });
  await layers.remove(layer);
  expect(happened.slice(1)).toEqual(['first lets go true', 'second lets go true', `unmount ${point}`]);
  expect(readdirSync(dir)).toEqual([]);
  await layers.remove(layer);
  expect(happened.filter(what => what.startsWith('unmount'))).toHaveLength(1);
  await made('a layer');
  await layers.mount(layer);
  expect(happened.at(-1)).toBe(`layer-mount ${point}`);
});
