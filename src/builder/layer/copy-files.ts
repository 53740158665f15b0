import { AtollError } from '../../base/error.ts';
import type { TarEntry } from '../archive/tar.ts';
import type { Attributes, ByteString, DirectoryNode, FileNode, SymlinkNode } from '../erofs/tree.ts';
import type { ImageWriter } from '../erofs/writer.ts';
import { freshAttributes } from './fresh-attributes.ts';
import { checkedTarget, partsOf } from './import-layer.ts';
import type { MergedTree } from './merged-tree.ts';

/** One source and one destination of a COPY. */
export type Copy = {
  /** File, directory or link in the archive; from the first glob character on, it only says what the archive holds. */
  source: ByteString;
  /** Glob characters in `source` are literal. */
  isExact?: boolean;
  /** Absolute. A trailing `/` makes it a directory. */
  destination: ByteString;
  /** Absent: as in the archive. */
  owner?: { uid: number; gid: number };
  /** Permission bits of what is copied, except links; absent: those in the archive. */
  mode?: number;
};

const newDirectoryMode = 0o755;

/**
 * Puts what `source` names in the archive into the tree. A directory's contents are merged into the destination: files
 * replace files, existing directories keep their owners and modes, links to directories are followed. Errors:
 * `not_found` if the archive holds nothing of that name, `invalid` where a file and a directory collide.
 */
export async function copyFiles(
  entries: AsyncIterable<TarEntry>,
  tree: MergedTree,
  writer: ImageWriter,
  options: Copy,
): Promise<void> {
  const wanted = sourceOf(options.source, options.isExact);
  const attributesFor = (entry: TarEntry): Attributes => ({
    ...entry.attributes,
    ...options.owner,
    ...(options.mode !== undefined && entry.type !== 'symlink' && { mode: options.mode }),
  });
  const owner = options.owner ?? { uid: 0, gid: 0 };
  // The mode applies to what is copied. Others use the directories around it too, and a file's permission bits would
  // let nobody in.
  const around = freshAttributes({ mode: newDirectoryMode, ...owner });
  const within = freshAttributes({ mode: options.mode ?? newDirectoryMode, ...owner });
  const placed = new Map<ByteString, FileNode | SymlinkNode>();
  let found = false;

  const place = async (entry: TarEntry, parent: DirectoryNode, name: ByteString) => {
    // A file with several names has its content at the first of them.
    const node =
      entry.type === 'link'
        ? placed.get(partsOf(entry.target).join('/'))
        : await nodeOf(entry, attributesFor(entry), writer);
    if (!node)
      throw new AtollError(
        'invalid',
        `the archive links ${entry.path} to ${entry.target}, which is not copied with it`,
      );
    tree.put(parent, name, node);
    placed.set(partsOf(entry.path).join('/'), node);
  };

  for await (const entry of entries) {
    if (!['file', 'directory', 'symlink', 'link'].includes(entry.type)) continue;
    const path = partsOf(entry.path);
    const below = wanted.partsBelow(path);
    if (below === undefined) continue;
    found = true;
    const name = below.pop();
    // Only the directory's content is copied, not the directory itself.
    if (name === undefined && entry.type === 'directory') tree.directory(options.destination, around);
    else if (name === undefined) {
      const own = path.at(-1) ?? '';
      const into = placeOf(tree, options.destination, own, around);
      await place(entry, into.parent, into.name);
    } else {
      let parent = tree.directory(options.destination, around);
      for (const part of below) parent = tree.child(parent, part, within);
      if (entry.type === 'directory') tree.child(parent, name, attributesFor(entry));
      else await place(entry, parent, name);
    }
  }
  if (!found) throw new AtollError('not_found', `${shown(options.source)} is not among the uploaded files`);
}

/** Destination of a single file: inside it if it is a directory, otherwise at its name. */
function placeOf(
  tree: MergedTree,
  destination: ByteString,
  name: ByteString,
  fresh: Attributes,
): { parent: DirectoryNode; name: ByteString } {
  if (destination.endsWith('/') || tree.findDirectory(destination))
    return { parent: tree.directory(destination, fresh), name };
  const slash = destination.lastIndexOf('/');
  return { parent: tree.directory(destination.slice(0, slash + 1), fresh), name: destination.slice(slash + 1) };
}

async function nodeOf(entry: TarEntry, attributes: Attributes, writer: ImageWriter): Promise<FileNode | SymlinkNode> {
  if (entry.type === 'symlink') return { kind: 'symlink', attributes, target: checkedTarget(entry.target, entry.path) };
  const file = writer.beginFile(attributes);
  await entry.content(part => file.write(part));
  return { kind: 'file', attributes, data: file.end() };
}

/**
 * `partsBelow` answers a path relative to the source: empty for the source itself, undefined for what is outside it.
 */
function sourceOf(source: ByteString, isExact = false): { partsBelow(path: ByteString[]): ByteString[] | undefined } {
  const glob = isExact ? -1 : source.search(/[*?[{]/);
  const text = glob < 0 ? source : source.slice(0, source.lastIndexOf('/', glob) + 1);
  // The archive holds exactly the matches of a partial name with a glob.
  const wanted = partsOf(text);
  return {
    partsBelow: path => (wanted.every((part, index) => path[index] === part) ? path.slice(wanted.length) : undefined),
  };
}

function shown(name: ByteString): string {
  return Buffer.from(name, 'latin1').toString();
}
