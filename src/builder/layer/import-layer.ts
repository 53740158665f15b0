import { AtollError } from '../../base/error.ts';
import type { TarEntry } from '../archive/tar.ts';
import { newDirectory, type ByteString, type DirectoryNode, type TreeNode } from '../erofs/tree.ts';
import type { ImageWriter } from '../erofs/writer.ts';

const whiteoutPrefix = '.wh.';
const opaqueName = '.wh..wh..opq';
/** Names with this prefix are the union file system's own files. */
const unionPrefix = '.wh..wh.';
const linksFollowedMax = 40;

/**
 * Reads one layer of an OCI image (OCI image-spec, layer.md) into a tree; its whiteouts become the overlay's. Nothing
 * is unpacked anywhere: names can only lead to other parts of the tree. Errors: `invalid` for names with `..` and links
 * to missing targets; device nodes are left out.
 */
export async function importLayer(entries: AsyncIterable<TarEntry>, writer: ImageWriter): Promise<DirectoryNode> {
  const root = newDirectory();
  for await (const entry of entries) await addEntry(root, entry, writer);
  return root;
}

async function addEntry(root: DirectoryNode, entry: TarEntry, writer: ImageWriter): Promise<void> {
  const path = partsOf(entry.path);
  const name = path.pop();
  if (name === undefined) {
    root.attributes = entry.attributes;
    return;
  }
  const parent = directoryAt(root, path, 0);
  if (name === opaqueName) parent.opaque = true;
  else if (name.startsWith(unionPrefix)) return;
  else if (name.startsWith(whiteoutPrefix))
    addWhiteout(parent, whiteoutName(name.slice(whiteoutPrefix.length), entry.path));
  else await addNamed(root, parent, name, entry, writer);
}

/** The name that a whiteout hides; it must not be empty, `.` or `..`. */
function whiteoutName(name: ByteString, path: ByteString): ByteString {
  if (name === '' || name === '.' || name === '..') return refuseName(path);
  return name;
}

/** A whiteout concerns the layers below: this layer's own entry of that name stays. */
function addWhiteout(parent: DirectoryNode, name: ByteString): void {
  const present = parent.entries.get(name);
  if (present?.kind === 'directory') present.opaque = true;
  else if (!present) parent.entries.set(name, { kind: 'whiteout' });
}

async function addNamed(
  root: DirectoryNode,
  parent: DirectoryNode,
  name: ByteString,
  entry: TarEntry,
  writer: ImageWriter,
): Promise<void> {
  const { attributes } = entry;
  const present = parent.entries.get(name);
  if (entry.type === 'directory') {
    if (present?.kind === 'directory') present.attributes = attributes;
    else parent.entries.set(name, { ...newDirectory(attributes), opaque: present?.kind === 'whiteout' });
    return;
  }
  const node = await nodeOf(root, entry, writer);
  if (node) parent.entries.set(name, node);
}

async function nodeOf(root: DirectoryNode, entry: TarEntry, writer: ImageWriter): Promise<TreeNode | undefined> {
  const { attributes, target } = entry;
  if (entry.type === 'fifo') return { kind: 'fifo', attributes };
  if (entry.type === 'symlink') return { kind: 'symlink', attributes, target: checkedTarget(target, entry.path) };
  if (entry.type === 'link') return linkTarget(root, target);
  if (entry.type !== 'file') return undefined;
  const file = writer.beginFile(attributes);
  await entry.content(part => file.write(part));
  return { kind: 'file', attributes, data: file.end() };
}

function linkTarget(root: DirectoryNode, target: ByteString): TreeNode {
  const path = partsOf(target);
  const name = path.pop() ?? '';
  const node = directoryAt(root, path, 0).entries.get(name);
  if (node && node.kind !== 'directory' && node.kind !== 'whiteout') return node;
  throw new AtollError('invalid', `the archive has a link to ${target}, which it does not hold`);
}

/** The directory of this layer at `path`, created if missing. Links of this layer are followed inside it. */
function directoryAt(root: DirectoryNode, path: ByteString[], linksFollowed: number): DirectoryNode {
  let directory = root;
  for (const [index, name] of path.entries()) {
    const next = directory.entries.get(name);
    if (next?.kind === 'directory') directory = next;
    else if (next?.kind === 'symlink') {
      if (linksFollowed >= linksFollowedMax)
        throw new AtollError('invalid', 'the archive has links that lead in a circle');
      const from = next.target.startsWith('/') ? [] : path.slice(0, index);
      return directoryAt(
        root,
        [...clean([...from, ...next.target.split('/')]), ...path.slice(index + 1)],
        linksFollowed + 1,
      );
    } else {
      const made = { ...newDirectory(), opaque: next?.kind === 'whiteout' };
      directory.entries.set(name, made);
      directory = made;
    }
  }
  return directory;
}

/** As in any file system, `..` in a link's target can't lead above the root. */
function clean(parts: ByteString[]): ByteString[] {
  const path: ByteString[] = [];
  for (const part of parts) {
    if (part === '..') path.pop();
    else if (part !== '' && part !== '.') path.push(part);
  }
  return path;
}

const nameBytesMax = 255;
/** The kernel's limit of a path and of a link's target. */
const pathBytesMax = 4095;

/** The parts of a name in an archive. Errors: `invalid`. */
export function partsOf(path: ByteString): ByteString[] {
  if (path.length > pathBytesMax) return refuseName(path);
  const parts = path.split('/').filter(part => part !== '' && part !== '.');
  return parts.some(part => part === '..' || part.length > nameBytesMax || part.includes('\0'))
    ? refuseName(path)
    : parts;
}

/** Checks the target of a link as the kernel would. Errors: `invalid`. */
export function checkedTarget(target: ByteString, path: ByteString): ByteString {
  if (target !== '' && target.length <= pathBytesMax && !target.includes('\0')) return target;
  throw new AtollError('invalid', `the archive holds a link ${path.slice(0, 200)} to nothing that a link can lead to`);
}

function refuseName(path: ByteString): never {
  throw new AtollError('invalid', `the archive holds a file with the name ${path.slice(0, 200)}, which is not allowed`);
}
