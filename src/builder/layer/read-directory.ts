import { readSync, type BigIntStats } from 'node:fs';
import { isStorable } from '../erofs/format.ts';
import type { Attributes, ByteString, DirectoryNode, TreeNode } from '../erofs/tree.ts';
import type { ImageWriter } from '../erofs/writer.ts';
import { openRoot, xattrsOf, type Opened, type Root } from './root.ts';

/** Attributes that become part of a layer. Overlay's own on an upper directory would only make equal layers differ. */
const keptXattr = /^(user\.|security\.capability$|system\.posix_acl_(access|default)$|trusted\.overlay\.redirect$)/;
const opaqueXattr = 'trusted.overlay.opaque';
const typeBits = 0o170000n;
const readSize = 1 << 20;

/** Extended attributes of directories, by their path. */
export type Marks = ReadonlyMap<ByteString, ReadonlyMap<string, Uint8Array>>;

/** An upper directory that becomes a layer. */
type PackOptions = {
  /** The upper directory of an overlay that nothing writes to any more. */
  upper: ByteString;
  /** Overlay's own attributes on directories, which only the host's administrator can read. */
  marks: Marks;
  /** Paths relative to `upper` that do not become part of the layer. */
  excluded: ReadonlySet<ByteString>;
};

/**
 * Reads an overlay's upper directory into a tree that serves as a layer, including whiteouts, opaque directories and
 * renamed directories. Undefined if nothing was written.
 */
export function readUpper(options: PackOptions, writer: ImageWriter): DirectoryNode | undefined {
  using upper = openRoot(options.upper);
  const byInode = new Map<bigint, TreeNode>();
  const buffer = Buffer.alloc(readSize);

  const readFile = (file: Opened, attributes: Attributes): TreeNode => {
    const output = writer.beginFile(attributes);
    for (let count; (count = readSync(file.fd, buffer, 0, readSize, null)) > 0;)
      output.write(buffer.subarray(0, count));
    return { kind: 'file', attributes, data: output.end() };
  };

  const readDirectory = (path: ByteString, attributes: Attributes): DirectoryNode | undefined => {
    const entries = new Map<ByteString, TreeNode>();
    let isExcluded = false;
    for (const name of upper.names(path)) {
      const child = path === '' ? name : `${path}/${name}`;
      const node = options.excluded.has(child) ? undefined : readNode(child);
      if (node) entries.set(name, node);
      // A directory is left out because of what it holds; a socket says nothing about where it is.
      else isExcluded ||= options.excluded.has(child) || upper.stat(child)?.isDirectory() === true;
    }
    // It existed only for what is excluded.
    if (isExcluded && entries.size === 0) return undefined;
    return { kind: 'directory', attributes, opaque: false, entries };
  };

  const readNode = (path: ByteString): TreeNode | undefined => {
    const stat = upper.stat(path);
    if (!stat) return undefined;
    const known = byInode.get(stat.ino);
    if (known) return known;
    const node = readNew(path, stat);
    if (node && stat.nlink > 1n && node.kind !== 'directory' && node.kind !== 'whiteout') byInode.set(stat.ino, node);
    return node;
  };

  const readNew = (path: ByteString, stat: BigIntStats): TreeNode | undefined => {
    switch (stat.mode & typeBits) {
      case 0o040000n: {
        const xattrs = new Map([...xattrsAt(upper, path), ...(options.marks.get(path) ?? [])]);
        const directory = readDirectory(path, attributesOf(stat, xattrs));
        return directory && { ...directory, opaque: xattrs.has(opaqueXattr) };
      }
      case 0o100000n: {
        using opened = upper.open(path);
        return readFile(opened, attributesOf(stat, xattrsOf(opened)));
      }
      case 0o120000n:
        return { kind: 'symlink', attributes: attributesOf(stat, new Map()), target: upper.readLink(path) };
      case 0o010000n:
        return { kind: 'fifo', attributes: attributesOf(stat, new Map()) };
      case 0o020000n:
        return stat.rdev === 0n ? { kind: 'whiteout' } : undefined;
      default:
        return undefined; // sockets mean nothing without their process
    }
  };

  const top = upper.stat('');
  const root = top && readDirectory('', attributesOf(top, new Map()));
  return root && root.entries.size > 0 ? root : undefined;
}

/** Closed before anything below is read: a tree may be deeper than the number of descriptors. */
function xattrsAt(upper: Root, path: ByteString): Map<string, Uint8Array> {
  using opened = upper.open(path);
  return xattrsOf(opened);
}

/** The attributes of a file on disk that a layer keeps. */
export function attributesOf(stat: BigIntStats, xattrs: ReadonlyMap<string, Uint8Array>): Attributes {
  const secondNs = 1_000_000_000n;
  // Counted up from the second before, also for times before 1970.
  const nanoseconds = ((stat.mtimeNs % secondNs) + secondNs) % secondNs;
  return {
    mode: Number(stat.mode & 0o7777n),
    uid: Number(stat.uid),
    gid: Number(stat.gid),
    mtimeSeconds: Number((stat.mtimeNs - nanoseconds) / secondNs),
    mtimeNanoseconds: Number(nanoseconds),
    xattrs: new Map([...xattrs].filter(([name]) => keptXattr.test(name) && isStorable(name))),
  };
}
