import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readSync } from 'node:fs';
import { AtollError, messageOf } from '../../../base/error.ts';
import { decompress } from '../archive/decompress.ts';
import { readTar, type TarEntry } from '../archive/tar.ts';
import type { DirectoryNode } from '../erofs/tree.ts';
import { createImageWriter, type ImageWriter } from '../erofs/writer.ts';
import { copyBetween } from './copy-between.ts';
import { copyFiles } from './copy-files.ts';
import { importLayer } from './import-layer.ts';
import type { LayerAnswer, LayerJob, LayerMade } from './job.ts';
import { createMergedTree } from './merged-tree.ts';
import { readUpper } from './read-directory.ts';
import { openRoot } from './root.ts';

const readSize = 1 << 20;

/**
 * Makes one layer: a process of its own, because archives come from strangers and take all of a core's time.
 * The job is its argument; the archive, where it needs one, its input; the answer one line of JSON.
 */
export async function runLayerProgram(job: LayerJob, input: AsyncIterable<Uint8Array>): Promise<LayerAnswer> {
  try {
    return { ok: await makeLayer(job, input) };
  } catch (error) {
    return { error: { code: error instanceof AtollError ? error.code : 'internal', message: messageOf(error) } };
  }
}

async function makeLayer(job: LayerJob, input: AsyncIterable<Uint8Array>): Promise<LayerMade> {
  const fd = openSync(job.image, 'wx+', 0o600);
  try {
    const writer = createImageWriter(fd, job.limits);
    const tree = await treeOf(job, input, writer);
    if (!tree) return null;
    const { bytes, inodes } = writer.finish(tree);
    const digest = digestOf(fd);
    fsyncSync(fd);
    return { digest, bytes, inodes };
  } finally {
    closeSync(fd);
  }
}

async function treeOf(job: LayerJob, input: AsyncIterable<Uint8Array>, writer: ImageWriter): Promise<DirectoryNode | undefined> {
  if (job.kind === 'import') {
    const hash = createHash('sha256');
    const tree = await importLayer(entriesOf(hashed(bounded(decompress(input), job.limits.bytesMax), hash), job.limits.inodesMax), writer);
    if (job.diffId !== undefined && job.diffId !== `sha256:${hash.digest('hex')}`) throw new AtollError('invalid', 'the content of a layer is not what the image says');
    return tree;
  }
  if (job.kind === 'seal') return readUpper({ upper: job.upper, excluded: new Set(job.excluded) }, writer);
  using view = openRoot(job.view);
  const tree = createMergedTree(view);
  if (job.kind === 'copy') await copyFiles(entriesOf(bounded(decompress(input), job.limits.bytesMax), job.limits.inodesMax), tree, writer, job.copy);
  else if (job.kind === 'copy-between') await copyBetween(job, tree, writer);
  else tree.directory(job.path, { mode: 0o755, ...job.owner, mtimeSeconds: 0, mtimeNanoseconds: 0, xattrs: new Map() });
  return tree.changed() ? tree.root : undefined;
}

async function* entriesOf(archive: AsyncIterable<Uint8Array>, entriesMax: number): AsyncGenerator<TarEntry> {
  let entries = 0;
  for await (const entry of readTar(archive)) {
    if (++entries > entriesMax) throw new AtollError('no_space', `the archive has more than ${entriesMax} files`);
    yield entry;
  }
}

/** An archive is at most twice as long as what it holds: headers, and the padding behind each file. */
async function* bounded(archive: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const part of archive) {
    bytes += part.length;
    if (bytes > 2 * bytesMax) throw new AtollError('no_space', `the archive is longer than ${Math.floor((2 * bytesMax) / 1024 / 1024)} MiB`);
    yield part;
  }
}

async function* hashed(source: AsyncIterable<Uint8Array>, hash: { update(part: Uint8Array): unknown }): AsyncGenerator<Uint8Array> {
  for await (const part of source) {
    hash.update(part);
    yield part;
  }
}

function digestOf(fd: number): string {
  const hash = createHash('sha256');
  const buffer = Buffer.alloc(readSize);
  for (let position = 0, count; (count = readSync(fd, buffer, 0, readSize, position)) > 0; position += count) hash.update(buffer.subarray(0, count));
  return `sha256:${hash.digest('hex')}`;
}
