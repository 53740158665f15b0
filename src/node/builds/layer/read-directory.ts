import { closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync, type BigIntStats } from 'node:fs';
import { AtollError } from '../../../base/error.ts';
import { xattrsOf } from '../../native/xattr.ts';
import { isStorable } from '../erofs/format.ts';
import type { Attributes, ByteString, DirectoryNode, TreeNode } from '../erofs/tree.ts';
import type { ImageWriter } from '../erofs/writer.ts';

/** What `overlay` notes for itself on an upper directory's files and would only make equal layers differ. */
const keptXattr = /^(user\.|security\.capability$|system\.posix_acl_(access|default)$|trusted\.overlay\.redirect$)/;
const opaqueXattr = 'trusted.overlay.opaque';
const typeBits = 0o170000n;
const readSize = 1 << 20;

export type SealOptions = {
  /** The upper directory of an overlay that nothing writes to any more. */
  upper: ByteString;
  /** Paths relative to `upper` that do not become part of the layer. */
  excluded: ReadonlySet<ByteString>;
};

/**
 * Reads an overlay's upper directory into a tree that serves as a layer: whiteouts, opaque directories and renamed
 * directories included. Undefined where nothing was written.
 */
export function readUpper(options: SealOptions, writer: ImageWriter): DirectoryNode | undefined {
  const byInode = new Map<bigint, TreeNode>();
  const buffer = Buffer.alloc(readSize);

  const readFile = (path: ByteString, attributes: Attributes): TreeNode => {
    const fd = openSync(bytes(path), 'r');
    try {
      const file = writer.beginFile(attributes);
      for (let count; (count = readSync(fd, buffer, 0, readSize, null)) > 0; ) file.write(buffer.subarray(0, count));
      return { kind: 'file', attributes, data: file.end() };
    } finally {
      closeSync(fd);
    }
  };

  const readDirectory = (path: ByteString, relative: ByteString, attributes: Attributes): DirectoryNode | undefined => {
    const entries = new Map<ByteString, TreeNode>();
    let left = 0;
    for (const name of namesIn(path)) {
      const child = relative === '' ? name : `${relative}/${name}`;
      const node = options.excluded.has(child) ? undefined : readNode(`${path}/${name}`, child);
      if (node) entries.set(name, node);
      else left++;
    }
    // It was there for what is left out.
    if (left > 0 && entries.size === 0) return undefined;
    return { kind: 'directory', attributes, opaque: false, entries };
  };

  const readNode = (path: ByteString, relative: ByteString): TreeNode | undefined => {
    const stat = lstatSync(bytes(path), { bigint: true });
    const known = byInode.get(stat.ino);
    if (known) return known;
    const xattrs = xattrsOf(path);
    const attributes = attributesOf(stat, xattrs);
    const node = ((): TreeNode | undefined => {
      switch (stat.mode & typeBits) {
        case 0o040000n: {
          const directory = readDirectory(path, relative, attributes);
          return directory && { ...directory, opaque: xattrs.has(opaqueXattr) };
        }
        case 0o100000n:
          return readFile(path, attributes);
        case 0o120000n:
          return { kind: 'symlink', attributes, target: readlinkSync(bytes(path), { encoding: 'buffer' }).toString('latin1') };
        case 0o010000n:
          return { kind: 'fifo', attributes };
        case 0o020000n:
          return stat.rdev === 0n ? { kind: 'whiteout' } : undefined;
        default:
          return undefined; // sockets mean nothing without their process
      }
    })();
    if (node && stat.nlink > 1n && node.kind !== 'directory' && node.kind !== 'whiteout') byInode.set(stat.ino, node);
    return node;
  };

  const root = readDirectory(options.upper, '', attributesOf(lstatSync(bytes(options.upper), { bigint: true }), new Map()));
  return root && root.entries.size > 0 ? root : undefined;
}

/** The attributes of a file on disk that a layer keeps. */
export function attributesOf(stat: BigIntStats, xattrs: ReadonlyMap<string, Uint8Array>): Attributes {
  const secondNs = 1_000_000_000n;
  return {
    mode: Number(stat.mode & 0o7777n),
    uid: Number(stat.uid),
    gid: Number(stat.gid),
    mtimeSeconds: Number(stat.mtimeNs / secondNs),
    mtimeNanoseconds: Number(stat.mtimeNs % secondNs),
    xattrs: new Map([...xattrs].filter(([name]) => keptXattr.test(name) && isStorable(name))),
  };
}

function namesIn(path: ByteString): ByteString[] {
  try {
    return readdirSync(bytes(path), { encoding: 'buffer' }).map(name => name.toString('latin1'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENAMETOOLONG') throw error;
    throw new AtollError('invalid', 'the step left directories nested so deep that their path is too long');
  }
}

export function bytes(path: ByteString): Buffer {
  return Buffer.from(path, 'latin1');
}
