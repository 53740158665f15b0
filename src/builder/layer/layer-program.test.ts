import { afterEach, beforeEach, expect, test } from 'bun:test';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sha256Hex } from '../../base/crypto/secret.ts';
import { writeTar, type NewTarEntry } from '../../base/write-tar.ts';
import type { LayerJob } from '../../protocol/builder.ts';
import { runLayerJob } from './layer-program.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-layer-'));
  for (const name of ['view/etc', 'from', 'upper', 'image', 'shown']) mkdirSync(join(dir, name), { recursive: true });
  const passwd = ['ann:x:1000:100::/home/ann:/bin/sh', 'bob:x:1001:1001::/home/bob:/bin/sh'];
  writeFileSync(join(dir, 'view/etc/passwd'), passwd.join('\n'));
  writeFileSync(join(dir, 'view/etc/group'), 'staff:x:50:\n');
});
afterEach(() => rmSync(dir, { recursive: true }));

const limits = { bytesMax: 1 << 20, inodesMax: 20 };
type Given = LayerJob extends infer Job ? (Job extends LayerJob ? Omit<Job, 'limits'> : never) : never;

async function* each(...parts: Uint8Array[]) {
  yield* parts;
}

/** The result of a job, and each file of the layer as the kernel shows it: type, mode, owner and path. */
async function made(job: Given, input: Uint8Array = new Uint8Array(0), own = limits) {
  const image = join(dir, 'layer');
  const output = openSync(image, 'w+');
  try {
    const shown = { view: join(dir, 'view'), from: join(dir, 'from'), upper: join(dir, 'upper'), image: '' };
    const answer = await runLayerJob({ ...job, limits: own } as LayerJob, { output, input: () => each(input), shown });
    if (!answer) return { answer, bytes: 0, files: [] };
    const find = `find . -mindepth 1 -printf '%y %m %U:%G %P\\n'`;
    const list = `mount -t erofs -o ro ${image} ${dir}/shown; cd ${dir}/shown; ${find}`;
    const { stdout, stderr } = Bun.spawnSync(['unshare', '--mount', 'sh', '-ec', list]);
    expect(stderr.toString()).toBe('');
    return { answer, bytes: statSync(image).size, files: stdout.toString().split('\n').filter(Boolean).sort() };
  } finally {
    closeSync(output);
  }
}

const attributes = { mode: 0o640, uid: 7, gid: 8 };
const fileOf = (path: string, text = path): NewTarEntry => ({
  ...{ path, type: 'file', attributes, content: Buffer.from(text) },
});

test('an archive becomes a layer, if it is the one that the image names', async () => {
  const archive = writeTar([fileOf('a'), fileOf('d/b')]);
  const files = ['d 755 0:0 d', 'f 640 7:8 a', 'f 640 7:8 d/b'];
  const result = await made({ kind: 'import' }, archive);
  expect(result.files).toEqual(files);
  expect(result.answer).toEqual({ bytes: result.bytes, inodes: 4 });
  const diffId = `sha256:${sha256Hex(archive)}`;
  // The digest is that of the uncompressed content.
  expect((await made({ kind: 'import', diffId }, Bun.gzipSync(Buffer.from(archive)))).files).toEqual(files);
  await expect(made({ kind: 'import', diffId: `sha256:${sha256Hex('x')}` }, archive)).rejects.toMatchObject({
    code: 'invalid',
  });
});

test('an archive may hold as many files as the layer, and be twice as long', async () => {
  const many = (count: number) => writeTar(Array.from({ length: count }, (_, index) => fileOf(`f${index}`, '')));
  const few = { ...limits, inodesMax: 4 };
  expect((await made({ kind: 'import' }, many(3), few)).files).toHaveLength(3);
  // The same file repeated is one file in the layer.
  const same = (count: number) => writeTar(Array.from({ length: count }, () => fileOf('f', '')));
  expect((await made({ kind: 'import' }, same(4), few)).files).toHaveLength(1);
  await expect(made({ kind: 'import' }, same(5), few)).rejects.toThrow('the archive has more than 4 files');
  const bytesMax = 8192;
  const padded = (bytes: number) => Buffer.concat([many(1), Buffer.alloc(bytes)]).subarray(0, bytes);
  expect((await made({ kind: 'import' }, padded(2 * bytesMax), { ...limits, bytesMax })).files).toHaveLength(1);
  for (const bytes of [2 * bytesMax + 512])
    await expect(made({ kind: 'import' }, padded(bytes), { ...limits, bytesMax })).rejects.toThrow(
      'the archive is longer than 0 MiB',
    );
});

test('what a step has written becomes a layer without what is excluded', async () => {
  mkdirSync(join(dir, 'upper/d'));
  for (const name of ['kept', 'd/left-out', 'd/caf\u00e9'])
    writeFileSync(join(dir, 'upper', name), '', { mode: 0o600 });
  const excluded = ['d/left-out', 'd/caf\u00e9'];
  expect((await made({ kind: 'pack', excluded: ['d/left-out'], marked: false })).files).toHaveLength(3);
  expect((await made({ kind: 'pack', excluded, marked: false })).files).toEqual(['f 600 0:0 kept']);
  rmSync(join(dir, 'upper/kept'));
  expect((await made({ kind: 'pack', excluded, marked: false })).answer).toBeNull();
});

const copy = { source: '', destination: '/to/', workdir: '/work', user: 'ann' };

test('uploaded files are copied with the owner and mode that are asked for', async () => {
  const archive = writeTar([fileOf('x')]);
  const filesOf = async (more: Partial<typeof copy> & { owner?: string; mode?: number }) =>
    (await made({ kind: 'copy', copy: { ...copy, source: 'x', ...more } }, archive)).files.filter(line =>
      line.startsWith('f'),
    );
  expect(await filesOf({})).toEqual(['f 640 7:8 to/x']);
  expect(await filesOf({ owner: 'bob:staff', mode: 0o755 })).toEqual(['f 755 1001:50 to/x']);
  expect(await filesOf({ owner: '' })).toEqual(['f 640 1000:100 to/x']);
  expect(await filesOf({ destination: 'below/y' })).toEqual(['f 640 7:8 work/below/y']);
  expect(await filesOf({ destination: 'y', workdir: '' })).toEqual(['f 640 7:8 home/ann/y']);
  const own = { ...limits, bytesMax: 100 };
  await expect(made({ kind: 'copy', copy: { ...copy, source: 'x' } }, archive, own)).rejects.toMatchObject({
    code: 'no_space',
  });
});

test('files of other layers are copied', async () => {
  for (const name of ['one.txt', 'two.txt', 'other']) writeFileSync(join(dir, 'from', name), '', { mode: 0o600 });
  const { files } = await made({ kind: 'copy-between', sources: ['*.txt'], copy: { ...copy, owner: 'bob' } });
  expect(files).toEqual(['d 755 1001:1001 to', 'f 600 1001:1001 to/one.txt', 'f 600 1001:1001 to/two.txt']);
});

test('no file and no link takes the place of a directory that every sandbox has of the platform', async () => {
  const link = (path: string): NewTarEntry => ({ path, type: 'symlink', target: 'etc', attributes });
  const at = { ...copy, destination: '/' };
  for (const [entry, path] of [
    [fileOf('.agent'), '/.agent'],
    [link('dev'), '/dev'],
    [link('proc'), '/proc'],
    [fileOf('sys'), '/sys'],
  ] as const)
    await expect(made({ kind: 'copy', copy: at }, writeTar([entry]))).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(`${path} of the template is a link or a file`) as string,
    });
  writeFileSync(join(dir, 'from/dev'), '');
  await expect(
    made({ kind: 'copy-between', sources: ['/dev'], copy: { ...at, destination: '/dev' } }),
  ).rejects.toMatchObject({ code: 'invalid' });
  // The content of such a directory, and things of that name elsewhere, stay as they were.
  const { files } = await made({ kind: 'copy', copy: at }, writeTar([fileOf('dev/x'), fileOf('d/dev')]));
  expect(files.filter(line => line.startsWith('f'))).toEqual(['f 640 7:8 d/dev', 'f 640 7:8 dev/x']);
});

test('a directory is made for its user, and nothing where it is there already', async () => {
  expect((await made({ kind: 'directory', path: '/a/b\u00e9', user: 'ann' })).files).toEqual([
    'd 755 1000:100 a',
    'd 755 1000:100 a/b\u00e9',
  ]);
  expect((await made({ kind: 'directory', path: '/etc', user: 'ann' })).answer).toBeNull();
});

test('no directory gets a name that none can have, be it of a step or of the home of a user', async () => {
  const long = 'x'.repeat(256);
  const refused = { code: 'invalid', message: expect.stringContaining('longer than 255 bytes') as string };
  await expect(made({ kind: 'directory', path: `/a/${long}`, user: 'ann' })).rejects.toMatchObject(refused);
  writeFileSync(join(dir, 'view/etc/passwd'), `ann:x:1000:100::/a/${long}:/bin/sh`);
  const at = { ...copy, destination: 'y', workdir: '' };
  await expect(made({ kind: 'copy', copy: at }, writeTar([fileOf('x')]))).rejects.toMatchObject(refused);
});
