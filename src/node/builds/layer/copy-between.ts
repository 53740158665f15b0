import { closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs';
import { AtollError } from '../../../base/error.ts';
import { xattrsOf } from '../../native/xattr.ts';
import type { TarEntry, TarEntryType } from '../archive/tar.ts';
import type { ByteString } from '../erofs/tree.ts';
import type { ImageWriter } from '../erofs/writer.ts';
import { resolveInView } from '../read-in-view.ts';
import { copyFiles, type CopyOptions } from './copy-files.ts';
import type { MergedTree } from './merged-tree.ts';
import { attributesOf, bytes } from './read-directory.ts';

const readSize = 1 << 20;

/** Copies paths of one file system into another. Errors: `not_found` for a source that names nothing. */
export async function copyBetween(job: { from: ByteString; sources: ByteString[]; copy: CopyOptions }, tree: MergedTree, writer: ImageWriter): Promise<void> {
  for (const source of job.sources) {
    const found = matchesOf(job.from, source);
    if (found.length === 0) throw new AtollError('not_found', `${Buffer.from(source, 'latin1').toString()} is not there to be copied`);
    for (const path of found) {
      const isDirectory = lstatSync(bytes(path)).isDirectory();
      const name = path.slice(path.lastIndexOf('/') + 1);
      const entries = isDirectory ? entriesBelow(path, '') : [entryOf(path, name)];
      await copyFiles(iterate(entries), tree, writer, { ...job.copy, source: isDirectory ? '' : escapeGlob(name) });
    }
  }
}

/** The files that a path stands for: links on the way to it are followed inside of `from`, each part may be a glob. */
function matchesOf(from: ByteString, source: ByteString): ByteString[] {
  let places = [from];
  const parts = source.split('/').filter(part => part !== '' && part !== '.');
  for (const [index, part] of parts.entries()) {
    const last = index === parts.length - 1;
    places = places.flatMap(place => {
      const names = /[*?[]/.test(part) ? namesIn(place).filter(name => new Bun.Glob(part).match(name)) : [part];
      return names.flatMap(name => {
        const path = `${place}/${name}`;
        const stat = lstatSync(bytes(path), { throwIfNoEntry: false });
        if (!stat) return [];
        if (!stat.isSymbolicLink()) return [path];
        const target = resolveInView(from, path.slice(from.length));
        // A link at the end is copied as what it leads to, as Docker does.
        return target === undefined ? (last ? [path] : []) : [target];
      });
    });
  }
  return places;
}

function* entriesBelow(directory: ByteString, prefix: ByteString): Generator<TarEntry> {
  yield entryOf(directory, prefix === '' ? '.' : prefix);
  for (const name of namesIn(directory)) {
    const path = `${directory}/${name}`;
    const relative = prefix === '' ? name : `${prefix}/${name}`;
    if (lstatSync(bytes(path)).isDirectory()) yield* entriesBelow(path, relative);
    else yield entryOf(path, relative);
  }
}

function entryOf(path: ByteString, name: ByteString): TarEntry {
  const stat = lstatSync(bytes(path), { bigint: true });
  const type: TarEntryType = stat.isDirectory() ? 'directory' : stat.isSymbolicLink() ? 'symlink' : stat.isFile() ? 'file' : 'device';
  return {
    type,
    path: name,
    target: type === 'symlink' ? readlinkSync(bytes(path), { encoding: 'buffer' }).toString('latin1') : '',
    attributes: attributesOf(stat, xattrsOf(path)),
    size: Number(stat.size),
    offset: 0,
    async content(take) {
      const fd = openSync(bytes(path), 'r');
      try {
        const buffer = Buffer.alloc(readSize);
        for (let count; (count = readSync(fd, buffer, 0, readSize, null)) > 0; ) take(buffer.subarray(0, count));
      } finally {
        closeSync(fd);
      }
    },
  };
}

function namesIn(path: ByteString): ByteString[] {
  return lstatSync(bytes(path)).isDirectory() ? readdirSync(bytes(path), { encoding: 'buffer' }).map(name => name.toString('latin1')).sort() : [];
}

async function* iterate(entries: Iterable<TarEntry>): AsyncGenerator<TarEntry> {
  yield* entries;
}

/** A name that happens to hold glob characters means itself. */
function escapeGlob(name: ByteString): ByteString {
  return /[*?[{]/.test(name) ? '' : name;
}
