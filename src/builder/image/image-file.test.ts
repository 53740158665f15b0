import { afterAll, expect, test } from 'bun:test';
import { closeSync, cpSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { sha256Hex } from '../../base/crypto/secret.ts';
import { writeTar, type NewTarEntry } from '../../base/write-tar.ts';
import { fileBlob, fileImage } from './image-file.ts';

const dir = mkdtempSync(join(tmpdir(), 'atoll-image-'));
afterAll(() => rmSync(dir, { recursive: true }));

const digestOf = (text: string) => `sha256:${sha256Hex(text)}`;
const layers = ['first layer', `second ${'x'.repeat(200_000)}`];
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const config = JSON.stringify({ architecture, config: { Env: ['A=1'] }, rootfs: { diff_ids: layers.map(digestOf) } });

/** The files of an OCI layout, by path. */
function layout(): Record<string, string> {
  const manifest = JSON.stringify({
    config: { digest: digestOf(config) },
    layers: layers.map(text => ({ digest: digestOf(text), size: text.length })),
  });
  const platform = { architecture, os: 'linux' };
  const index = JSON.stringify({ manifests: [{ digest: digestOf(manifest), platform }] });
  const blobs = [manifest, config, ...layers].map(text => [`blobs/sha256/${sha256Hex(text)}`, text]);
  return { ...Object.fromEntries(blobs), 'index.json': index };
}

/** The files of `docker save`. */
const saved: Record<string, string> = {
  'one/layer.tar': layers[0] ?? '',
  'config.json': config,
  'two/layer.tar': layers[1] ?? '',
  'manifest.json': JSON.stringify([{ Config: 'config.json', Layers: ['one/layer.tar', 'two/layer.tar'] }]),
};

const attributes = { mode: 0o644, uid: 0, gid: 0 };

function archiveOf(files: Record<string, string>, more: NewTarEntry[] = []): string {
  const path = join(mkdtempSync(join(dir, 'archive-')), 'image.tar');
  const entries = Object.entries(files).map(([name, text]): NewTarEntry => ({
    path: name,
    type: 'file',
    attributes,
    content: Buffer.from(text),
  }));
  writeFileSync(path, writeTar([...entries, ...more]));
  return path;
}

function folderOf(files: Record<string, string>): string {
  const path = mkdtempSync(join(dir, 'folder-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

/** The written bytes of a blob. */
async function blobOf(path: string, digest: string, bytesMax = 1 << 20): Promise<string> {
  const file = join(mkdtempSync(join(dir, 'blob-')), 'out');
  const fd = openSync(file, 'wx+');
  try {
    expect(await fileBlob({ kind: 'file-blob', version: '', digest, bytesMax }, fd, path)).toBeNull();
  } finally {
    closeSync(fd);
  }
  return readFileSync(file, 'utf8');
}

const gzipped = (path: string) => {
  writeFileSync(path, Bun.gzipSync(readFileSync(path)));
  return path;
};

const forms = {
  'the directory of a layout': folderOf(layout()),
  'the archive of a layout': archiveOf(layout()),
  'its archive with names from a dot': archiveOf(
    Object.fromEntries(Object.entries(layout()).map(([name, text]) => [`./${name}`, text])),
  ),
  'its archive, compressed': gzipped(archiveOf(layout())),
  'the output of docker save': archiveOf(saved),
  'its unpacked directory': folderOf(saved),
};

for (const [form, path] of Object.entries(forms))
  test(`an image is read from ${form}, and its layers`, async () => {
    const { image, version } = await fileImage(path);
    expect(version).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(image.env).toEqual({ A: '1' });
    expect(image.layers.map(({ diffId }) => diffId)).toEqual(layers.map(digestOf));
    for (const [index, text] of layers.entries())
      expect(await blobOf(path, image.layers[index]?.digest ?? '')).toBe(text);
    expect(await blobOf(path, digestOf(config))).toBe(config);
  });

test('a version changes with the image, and with nothing else', async () => {
  const version = async (path: string) => (await fileImage(path)).version;
  const copy = mkdtempSync(join(dir, 'copy-'));
  cpSync(forms['the directory of a layout'], copy, { recursive: true });
  expect(await version(copy)).toBe(await version(forms['the archive of a layout']));
  const other = config.replace('A=1', 'A=2');
  expect(await version(archiveOf({ ...saved, 'config.json': other }))).not.toBe(await version(archiveOf(saved)));
});

test('layers that images share may be links in an archive', async () => {
  const { 'one/layer.tar': shared = '', 'two/layer.tar': second = '', ...rest } = saved;
  const files = { ...rest, 'of-another/layer.tar': shared, 'two/layer.tar': second };
  const link = { path: 'one/layer.tar', type: 'symlink', attributes, target: '../of-another/layer.tar' } as const;
  expect(await blobOf(archiveOf(files, [link]), digestOf(shared))).toBe(shared);
  // The same as a second name of the file, in tar's form.
  const folder = folderOf(files);
  const made = Bun.spawnSync(
    ['sh', '-ec', 'mkdir one; ln of-another/layer.tar one/layer.tar; tar -cf all.tar of-another one two *.json'],
    { cwd: folder },
  );
  expect(made.exitCode).toBe(0);
  const archive = join(folder, 'all.tar');
  for (const text of layers) expect(await blobOf(archive, digestOf(text))).toBe(text);
});

test('an archive that is no image is refused as such', async () => {
  const invalid = (message: string) => expect.objectContaining({ code: 'invalid', message });
  await expect(fileImage(archiveOf({ other: 'x' }))).rejects.toEqual(
    invalid('the file of the image is neither an OCI layout nor an archive of docker save'),
  );
  await expect(fileImage(archiveOf({ ...saved, 'manifest.json': '[]' }))).rejects.toEqual(
    invalid('the archive holds no image'),
  );
  const { 'config.json': _, ...without } = saved;
  await expect(fileImage(archiveOf(without))).rejects.toEqual(invalid("the image's archive lacks config.json"));
  await expect(blobOf(archiveOf(saved), digestOf('other'))).rejects.toEqual(
    invalid("the image's archive lacks a layer"),
  );
});

test('texts of an image and its blobs are read up to their bounds', async () => {
  const padded = (bytes: number) => archiveOf({ ...saved, 'config.json': config.padEnd(bytes) });
  expect((await fileImage(padded(8 << 20))).image.env).toEqual({ A: '1' });
  await expect(fileImage(padded((8 << 20) + 1))).rejects.toThrow("config.json of the image's archive is too long");
  const path = forms['the output of docker save'];
  const second = layers[1] ?? '';
  expect(await blobOf(path, digestOf(second), second.length)).toBe(second);
  await expect(blobOf(path, digestOf(second), second.length - 1)).rejects.toMatchObject({ code: 'no_space' });
});
