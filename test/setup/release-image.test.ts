import { afterAll, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runtimePackages } from '../../scripts/release/debian-package.mjs';
import { writeImage } from '../../scripts/release/image.mjs';
import { settle } from '../../scripts/release/tree.mjs';
import { decompress } from '../../src/builder/archive/decompress.ts';
import { readTar } from '../../src/builder/archive/tar.ts';
import { readImage } from '../../src/builder/image/manifest.ts';

// The image of a release, from a small tree and a base that needs no mirror. `npm run test:image` makes the real one
// and runs it.

const folder = mkdtempSync(join(tmpdir(), 'atoll-image-'));
afterAll(() => rmSync(folder, { recursive: true }));

const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const facts = { version: '1.2.3', description: 'A test', architecture, commit: 'c0ffee', epoch: 1_700_000_000 };

/** The base's archive is empty: 1024 zero bytes. */
const base = async (tar: string, packages: readonly string[]) => {
  expect(packages).toEqual(runtimePackages);
  writeFileSync(tar, new Uint8Array(1024));
};

async function imageOf(place: string, text: string, later: boolean): Promise<Map<string, Uint8Array>> {
  const tree = join(folder, place, 'tree');
  const output = join(folder, place, 'output');
  for (const name of later ? ['docs/a.md', 'bin/atoll'] : ['bin/atoll', 'docs/a.md']) {
    const path = join(tree, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, `${name}${text}`);
    chmodSync(path, name === 'bin/atoll' ? 0o700 : 0o600);
    utimesSync(path, later ? 5e8 : 6e8, later ? 5e8 : 6e8);
  }
  mkdirSync(output);
  settle(tree, facts.epoch);
  await writeImage(tree, output, facts, base);
  expect(readdirSync(output)).toEqual([`atoll-1.2.3-linux-${architecture}.oci.tar`]);
  return filesOf(readFileSync(join(output, `atoll-1.2.3-linux-${architecture}.oci.tar`)));
}

async function* inOnePart(bytes: Uint8Array) {
  yield bytes;
}

/** The files of an archive, by name. */
async function filesOf(archive: Uint8Array): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for await (const entry of readTar(inOnePart(archive))) {
    const parts: Uint8Array[] = [];
    await entry.content(part => parts.push(Uint8Array.from(part)));
    files.set(entry.path, Buffer.concat(parts));
  }
  return files;
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const blobIn = (files: Map<string, Uint8Array>, digest: string) => {
  const bytes = files.get(`blobs/sha256/${digest.replace('sha256:', '')}`);
  if (!bytes) throw new Error(`no blob ${digest}`);
  return bytes;
};
const json = (bytes: Uint8Array | undefined) => JSON.parse(Buffer.from(bytes ?? []).toString()) as unknown;

test('an image is what engines read: every blob by its digest, layers by their content, entrypoint and labels', async () => {
  const files = await imageOf('one', '', false);
  for (const [name, bytes] of files)
    if (/^blobs\/sha256\/./.test(name)) expect(name).toBe(`blobs/sha256/${sha256(bytes)}`);
  expect(json(files.get('oci-layout'))).toEqual({ imageLayoutVersion: '1.0.0' });
  const index = json(files.get('index.json')) as { manifests: { digest: string; size: number; annotations: object }[] };
  const [entry] = index.manifests;
  expect(entry?.annotations).toEqual({
    'org.opencontainers.image.ref.name': '1.2.3',
    'io.containerd.image.name': 'docker.io/library/atoll:1.2.3',
  });
  expect(blobIn(files, entry?.digest ?? '')).toHaveLength(entry?.size ?? -1);

  // As template builds read images.
  const store = {
    manifest: async (version: string) => blobIn(files, version),
    blob: async (digest: string) => inOnePart(blobIn(files, digest)),
  };
  const image = await readImage(store, entry?.digest ?? '');
  expect(image.layers).toHaveLength(2);
  for (const { digest, diffId, size } of image.layers) {
    expect(blobIn(files, digest)).toHaveLength(size);
    expect(`sha256:${sha256(Bun.gunzipSync(Uint8Array.from(blobIn(files, digest))))}`).toBe(diffId);
  }
  // As `docker load` did before it could read the layout.
  const [list] = json(files.get('manifest.json')) as [{ Config: string; RepoTags: string[]; Layers: string[] }];
  expect(list.RepoTags).toEqual(['atoll:1.2.3']);
  expect(list.Layers).toEqual(image.layers.map(({ digest }) => digest.replace('sha256:', 'blobs/sha256/')));
  const { config } = json(files.get(list.Config)) as { config: Record<string, unknown> };
  expect(config['Entrypoint']).toEqual(['/usr/bin/atoll']);
  expect(config['Cmd']).toEqual(['up', '--service']);
  expect(config['Volumes']).toEqual({ '/var/lib/atoll': {} });
  expect(config['ExposedPorts']).toEqual({ '3000/tcp': {} });
  expect(config['Labels']).toMatchObject({
    'org.opencontainers.image.version': '1.2.3',
    'org.opencontainers.image.revision': 'c0ffee',
  });
});

test('the layer of a release has it where a machine has it, as root, with the time of its commit', async () => {
  const files = await imageOf('two', '', false);
  const [list] = json(files.get('manifest.json')) as [{ Layers: string[] }];
  const layer = files.get(list.Layers[1] ?? '') ?? new Uint8Array();
  const shown: Record<string, string> = {};
  for await (const { path, type, target, attributes } of readTar(decompress(inOnePart(layer)))) {
    expect([attributes.uid, attributes.gid, attributes.mtimeSeconds]).toEqual([0, 0, facts.epoch]);
    shown[path.replace(/\/$/, '')] = `${type} ${(attributes.mode & 0o7777).toString(8)} ${target}`.trim();
  }
  expect(shown).toEqual({
    usr: 'directory 755',
    'usr/bin': 'directory 755',
    'usr/bin/atoll': 'symlink 777 ../lib/atoll/bin/atoll',
    'usr/lib': 'directory 755',
    'usr/lib/atoll': 'directory 755',
    'usr/lib/atoll/bin': 'directory 755',
    'usr/lib/atoll/bin/atoll': 'file 755',
    'usr/lib/atoll/docs': 'directory 755',
    'usr/lib/atoll/docs/a.md': 'file 644',
  });
});

test('equal contents make equal images, octet by octet, and others do not', async () => {
  const digests = async (place: string, text: string, later: boolean) =>
    [...(await imageOf(place, text, later))].map(([name, bytes]) => `${name} ${sha256(bytes)}`);
  const one = await digests('equal', '', false);
  expect(await digests('of/another/place', '', true)).toEqual(one);
  expect(await digests('changed', '!', false)).not.toEqual(one);
});

test('without a base there is no image, and nothing of one', async () => {
  const output = join(folder, 'none');
  mkdirSync(output);
  const away = async () => {
    throw new Error('the mirror is away');
  };
  await expect(writeImage(join(folder, 'one/tree'), output, facts, away)).rejects.toThrow('the mirror is away');
  expect(readdirSync(output)).toEqual([]);
});
