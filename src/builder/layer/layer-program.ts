import { createHash } from 'node:crypto';
import { fsyncSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { joinPath } from '../../base/join-path.ts';
import type { CopyOptions, LayerJob, LayerMade } from '../../protocol/builder.ts';
import { currentAccount, ownerOf, readAccounts } from '../accounts.ts';
import { decompress } from '../archive/decompress.ts';
import { readTar, type TarEntry } from '../archive/tar.ts';
import type { ByteString, DirectoryNode } from '../erofs/tree.ts';
import { createImageWriter, type ImageWriter } from '../erofs/writer.ts';
import { shownAs } from '../shown.ts';
import { copyBetween } from './copy-between.ts';
import { copyFiles, type Copy } from './copy-files.ts';
import { freshAttributes } from './fresh-attributes.ts';
import { importLayer } from './import-layer.ts';
import { readMarks } from './marks.ts';
import { createMergedTree } from './merged-tree.ts';
import { readUpper } from './read-directory.ts';
import { openRoot, type Root } from './root.ts';

/** Files that a job reads and writes. */
type LayerFiles = {
  /** Open for reading and writing, and empty. */
  output: number;
  /** The archive, or marks, if the job has one. */
  input(): AsyncIterable<Uint8Array>;
  /** Directories of the job; default: those of every builder. */
  shown?: { [name in keyof typeof shownAs]: string };
};

/** Makes one layer. Errors: `invalid`, `not_found`, `no_space`. */
export async function runLayerJob(job: LayerJob, files: LayerFiles): Promise<LayerMade> {
  const writer = createImageWriter(files.output, job.limits);
  const tree = await treeOf(job, files, writer);
  if (!tree) return null;
  const made = writer.finish(tree);
  fsyncSync(files.output);
  return made;
}

async function treeOf(job: LayerJob, files: LayerFiles, writer: ImageWriter): Promise<DirectoryNode | undefined> {
  const { input, shown = shownAs } = files;
  const { bytesMax, inodesMax } = job.limits;
  if (job.kind === 'import') {
    const hash = createHash('sha256');
    const tree = await importLayer(entriesOf(hashed(bounded(decompress(input()), bytesMax), hash), inodesMax), writer);
    if (job.diffId !== undefined && job.diffId !== `sha256:${hash.digest('hex')}`)
      throw new AtollError('invalid', 'the content of a layer is not what the image says');
    return tree;
  }
  if (job.kind === 'pack') {
    const marks = job.marked ? await readMarks(input()) : new Map();
    return readUpper({ upper: shown.upper, marks, excluded: new Set(job.excluded.map(bytesOf)) }, writer);
  }
  using view = openRoot(shown.view);
  const tree = createMergedTree(view);
  if (job.kind === 'copy')
    await copyFiles(entriesOf(bounded(decompress(input()), bytesMax), inodesMax), tree, writer, copyOf(job.copy, view));
  else if (job.kind === 'copy-between')
    await copyBetween(
      { from: shown.from, sources: job.sources.map(bytesOf), copy: copyOf(job.copy, view) },
      tree,
      writer,
    );
  else {
    const { uid, gid } = currentAccount(readAccounts(view), job.user);
    tree.directory(bytesOf(job.path), freshAttributes({ mode: 0o755, uid, gid }));
  }
  return tree.changed() ? tree.root : undefined;
}

/** Replaces names of users and directories in the copy by what the layers themselves define. */
function copyOf({ source, destination, workdir, user, owner, mode }: CopyOptions, view: Root): Copy {
  const accounts = readAccounts(view);
  const current = currentAccount(accounts, user);
  return {
    source: bytesOf(source),
    destination: bytesOf(joinPath(workdir || current.home, destination)),
    ...(owner !== undefined && { owner: ownerOf(accounts, current, owner) }),
    ...(mode !== undefined && { mode }),
  };
}

async function* entriesOf(archive: AsyncIterable<Uint8Array>, entriesMax: number): AsyncGenerator<TarEntry> {
  let entries = 0;
  for await (const entry of readTar(archive)) {
    if (++entries > entriesMax) throw new AtollError('no_space', `the archive has more than ${entriesMax} files`);
    yield entry;
  }
}

/** An archive is at most twice as long as its content: headers, and padding behind each file. */
async function* bounded(archive: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const part of archive) {
    bytes += part.length;
    if (bytes > 2 * bytesMax)
      throw new AtollError('no_space', `the archive is longer than ${Math.floor((2 * bytesMax) / 1024 / 1024)} MiB`);
    yield part;
  }
}

async function* hashed(
  source: AsyncIterable<Uint8Array>,
  hash: { update(part: Uint8Array): unknown },
): AsyncGenerator<Uint8Array> {
  for await (const part of source) {
    hash.update(part);
    yield part;
  }
}

/** One character per byte. */
function bytesOf(text: string): ByteString {
  return Buffer.from(text).toString('latin1');
}
