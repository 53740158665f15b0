import { fstatSync, readSync, type BigIntStats } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import type { TarEntry } from '../archive/tar.ts';
import type { ByteString } from '../erofs/tree.ts';
import type { ImageWriter } from '../erofs/writer.ts';
import { copyFiles, type Copy } from './copy-files.ts';
import type { MergedTree } from './merged-tree.ts';
import { attributesOf } from './read-directory.ts';
import { openRoot, xattrsOf, type Opened, type Root } from './root.ts';

const readSize = 1 << 20;
/** Files that match one source with globs. */
const matchesMax = 10_000;
/** The kernel's limit of a path. */
const sourceBytesMax = 4095;

/**
 * Copies paths of one file system into another. Errors: `not_found` for a source without a match; `invalid` for a
 * source with `..` or with globs that match too much, and for several files whose destination is no directory.
 */
export async function copyBetween(
  job: { from: ByteString; sources: ByteString[]; copy: Copy },
  tree: MergedTree,
  writer: ImageWriter,
): Promise<void> {
  using from = openRoot(job.from);
  const { destination } = job.copy;
  let copied = 0;
  for (const source of job.sources) {
    const found = matchesOf(from, source);
    if (found.length === 0) throw new AtollError('not_found', `${shown(source)} is not there to be copied`);
    for (const path of found) {
      const stat = from.stat(path);
      if (!stat) continue;
      // Only here is it known how many files a glob matches.
      if (copied++ > 0 && !destination.endsWith('/') && !tree.findDirectory(destination))
        throw new AtollError('invalid', 'where several files are copied, the destination must be there or end in /');
      const name = path.slice(path.lastIndexOf('/') + 1);
      const entries = stat.isDirectory() ? entriesBelow(from, path, '.') : [entryOf(from, path, name, stat)];
      await copyFiles(iterate(entries), tree, writer, {
        ...job.copy,
        source: stat.isDirectory() ? '' : name,
        isExact: true,
      });
    }
  }
}

/** The files that a path matches: links on the way are followed inside `from`; each part may be a glob. */
function matchesOf(from: Root, source: ByteString): ByteString[] {
  if (source.length > sourceBytesMax)
    throw new AtollError('invalid', `a source is longer than ${sourceBytesMax} bytes`);
  const parts = source.split('/').filter(part => part !== '' && part !== '.');
  if (parts.includes('..'))
    throw new AtollError('invalid', `${shown(source)} leads upwards: a source must not have ..`);
  let places: ByteString[] = [''];
  for (const [index, part] of parts.entries()) {
    const last = index === parts.length - 1;
    places = places.flatMap(place =>
      namesOf(from, place, part).flatMap(name => placeOf(from, place === '' ? name : `${place}/${name}`, last)),
    );
    if (places.length > matchesMax)
      throw new AtollError('invalid', `${shown(source)} stands for more than ${matchesMax} files`);
  }
  return places;
}

/** The names in a directory that match a part of a source. */
function namesOf(from: Root, place: ByteString, part: ByteString): ByteString[] {
  if (!/[*?[]/.test(part)) return [part];
  if (from.stat(place)?.isDirectory() !== true) return [];
  // Docker's patterns have no alternatives in braces, and no leading `!`.
  const glob = new Bun.Glob(part.replace(/(?<!\\)[{}]|^!/g, '\\$&'));
  return from
    .names(place)
    .filter(name => glob.match(name))
    .sort();
}

/** The places that a path leads to when only its last part may be a link; none if it leads nowhere. */
function placeOf(from: Root, path: ByteString, last: boolean): ByteString[] {
  const stat = from.stat(path);
  if (!stat) return [];
  if (!stat.isSymbolicLink()) return [path];
  const target = from.follow(path);
  // A final link is copied as what it leads to, as in Docker.
  return target === undefined ? (last ? [path] : []) : [target];
}

function* entriesBelow(from: Root, directory: ByteString, relative: ByteString): Generator<TarEntry> {
  const stat = from.stat(directory);
  if (!stat) return;
  yield entryOf(from, directory, relative, stat);
  if (!stat.isDirectory()) return;
  for (const name of from.names(directory).sort())
    yield* entriesBelow(
      from,
      directory === '' ? name : `${directory}/${name}`,
      relative === '.' ? name : `${relative}/${name}`,
    );
}

function entryOf(from: Root, path: ByteString, name: ByteString, stat: BigIntStats): TarEntry {
  const type = stat.isDirectory() ? 'directory' : stat.isSymbolicLink() ? 'symlink' : stat.isFile() ? 'file' : 'device';
  const xattrs = () => {
    using opened = from.open(path);
    return xattrsOf(opened);
  };
  return {
    type,
    path: name,
    target: type === 'symlink' ? from.readLink(path) : '',
    attributes: attributesOf(stat, type === 'file' || type === 'directory' ? xattrs() : new Map()),
    size: Number(stat.size),
    offset: 0,
    async content(take) {
      using file = from.open(path);
      if (fstatSync(file.fd).isFile()) readAll(file, take);
    },
  };
}

function readAll(file: Opened, take: (part: Uint8Array) => void): void {
  const buffer = Buffer.alloc(readSize);
  for (let count; (count = readSync(file.fd, buffer, 0, readSize, null)) > 0;) take(buffer.subarray(0, count));
}

async function* iterate(entries: Iterable<TarEntry>): AsyncGenerator<TarEntry> {
  yield* entries;
}

function shown(name: ByteString): string {
  return Buffer.from(name, 'latin1').toString().slice(0, 200);
}
