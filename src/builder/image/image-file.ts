import { createReadStream, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { sha256Hex } from '../../base/crypto/secret.ts';
import { readTar } from '../archive/tar.ts';
import { decompress } from '../archive/decompress.ts';
import type { BuilderJob, FoundFile } from '../../protocol/builder.ts';
import { shownAs } from '../shown.ts';
import { readImage } from './manifest.ts';
import { writeBounded } from './registry-image.ts';
import type { ImageStore } from './registry.ts';

/** Looks up a file of the archive by name: where its bytes are. */
type Files = { read(name: string): Promise<AsyncIterable<Uint8Array>>; has(name: string): boolean };

/**
 * An image in files of this machine at `path`: the directory of an OCI layout, an archive of one, or the output of
 * `docker save`. Errors: `invalid`.
 */
export async function fileImage(path: string = shownAs.image): Promise<FoundFile> {
  const { store, version } = await openImage(path);
  return { image: await readImage(store, version), version };
}

/** Writes one of its blobs. */
export async function fileBlob(
  { digest, bytesMax }: BuilderJob & { kind: 'file-blob' },
  output: number,
  path: string = shownAs.image,
): Promise<null> {
  const { store } = await openImage(path);
  await writeBounded(await store.blob(digest), output, bytesMax);
  return null;
}

async function openImage(path: string): Promise<{ store: ImageStore; version: string }> {
  const files = statSync(path).isDirectory() ? directoryFiles(path) : await archiveFiles(path);
  if (files.has('index.json')) return layoutStore(files);
  if (files.has('manifest.json')) return savedStore(files);
  throw new AtollError('invalid', 'the file of the image is neither an OCI layout nor an archive of docker save');
}

const blobName = (digest: string) => `blobs/${digest.replace(':', '/')}`;

async function layoutStore(files: Files): Promise<{ store: ImageStore; version: string }> {
  const index = await textOf(files, 'index.json');
  const version = `sha256:${sha256Hex(index)}`;
  return {
    version,
    store: {
      manifest: async digest => Buffer.from(digest === version ? index : await textOf(files, blobName(digest))),
      blob: digest => files.read(blobName(digest)),
    },
  };
}

type Saved = { Config: string; Layers: string[] };

/** `docker save` names files by path; this makes a manifest that names them by digest. */
async function savedStore(files: Files): Promise<{ store: ImageStore; version: string }> {
  const [saved] = JSON.parse(await textOf(files, 'manifest.json')) as Saved[];
  if (!saved) throw new AtollError('invalid', 'the archive holds no image');
  const config = await textOf(files, saved.Config);
  const configDigest = `sha256:${sha256Hex(config)}`;
  // Its layers are not compressed, so the configuration's digests are theirs.
  const diffIds = (JSON.parse(config) as { rootfs?: { diff_ids?: string[] } }).rootfs?.diff_ids ?? [];
  const names = new Map(diffIds.map((digest, index) => [digest, saved.Layers[index] ?? '']));
  const manifest = JSON.stringify({
    config: { digest: configDigest },
    layers: diffIds.map(digest => ({ digest, size: 0 })),
  });
  return {
    version: `sha256:${sha256Hex(manifest)}`,
    store: {
      manifest: async () => Buffer.from(manifest),
      blob: digest => files.read(digest === configDigest ? saved.Config : (names.get(digest) ?? '')),
    },
  };
}

function directoryFiles(path: string): Files {
  return {
    has: name => existsSync(join(path, name)),
    read: async name => createReadStream(join(path, name)) as AsyncIterable<Uint8Array>,
  };
}

/** Finds where each file of the archive begins. */
async function archiveFiles(path: string): Promise<Files> {
  const places = new Map<string, { offset: number; size: number }>();
  const links = new Map<string, string>();
  const content = () => decompress(createReadStream(path) as AsyncIterable<Uint8Array>);
  for await (const entry of readTar(content())) {
    const name = clean(entry.path);
    if (entry.type === 'file') places.set(name, entry);
    // Older Docker writes layers that two images share as links.
    if (entry.type === 'symlink') links.set(name, clean(join(name, '..', entry.target)));
    if (entry.type === 'link') links.set(name, clean(entry.target));
  }
  const placeOf = (name: string) => places.get(name) ?? places.get(links.get(name) ?? '');
  return {
    has: name => placeOf(name) !== undefined,
    async read(name) {
      const place = placeOf(name);
      if (!place) throw new AtollError('invalid', `the image's archive lacks ${name || 'a layer'}`);
      return part(content(), place);
    },
  };
}

const clean = (path: string) => path.replace(/^(\.?\/)+/, '');

async function* part(
  content: AsyncIterable<Uint8Array>,
  { offset, size }: { offset: number; size: number },
): AsyncGenerator<Uint8Array> {
  let position = 0;
  for await (const bytes of content) {
    const wanted = bytes.subarray(Math.max(0, offset - position), Math.max(0, offset + size - position));
    position += bytes.length;
    if (wanted.length > 0) yield wanted;
    if (position >= offset + size) return;
  }
}

const textBytesMax = 8 << 20;

async function textOf(files: Files, name: string): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of await files.read(name)) {
    length += part.length;
    if (length > textBytesMax) throw new AtollError('invalid', `${name} of the image's archive is too long`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}
