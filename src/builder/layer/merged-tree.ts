import type { BigIntStats } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { placeTaken, platformDirectories } from '../../protocol/template/platform-directories.ts';
import type { Attributes, ByteString, DirectoryNode, FileNode, SymlinkNode } from '../erofs/tree.ts';
import { attributesOf } from './read-directory.ts';
import { xattrsOf, type Root } from './root.ts';

const linksFollowedMax = 40;

/**
 * A layer in the making, seen together with the layers below it: paths are resolved as in the finished file system,
 * following links but never out of it. `view` shows the layers below; nothing changes it meanwhile.
 */
export type MergedTree = {
  root: DirectoryNode;
  /**
   * The directory at `path`, brought into the layer; created with `attributes` if missing. Errors: `invalid` if a file
   * is there.
   */
  directory(path: ByteString, attributes: Attributes): DirectoryNode;
  /**
   * The directory of this name in `parent`, or the one that its link leads to, created with `attributes` if missing.
   * Errors as above.
   */
  child(parent: DirectoryNode, name: ByteString, attributes: Attributes): DirectoryNode;
  /** The directory at `path` if there is one. */
  findDirectory(path: ByteString): DirectoryNode | undefined;
  /**
   * Puts a file or link into a directory, replacing another. Errors: `invalid` if it would replace a directory,
   * including those of the platform.
   */
  put(parent: DirectoryNode, name: ByteString, node: FileNode | SymlinkNode): void;
  /** True if the layer contains any change. */
  changed(): boolean;
};

type Found = DirectoryNode | { kind: 'symlink'; target: ByteString } | { kind: 'other' } | undefined;

type Missing = (parent: DirectoryNode, name: ByteString, found: Found) => DirectoryNode | undefined;

/** An empty layer above the file system that `view` shows. */
export function createMergedTree(view: Root): MergedTree {
  /** The directory in the layers below that a directory of this layer continues. */
  const below = new WeakMap<DirectoryNode, ByteString>();
  const parents = new WeakMap<DirectoryNode, DirectoryNode>();
  let changed = false;

  const bring = (path: ByteString, stat: BigIntStats): DirectoryNode => {
    using opened = view.open(path);
    const directory = emptyDirectory(attributesOf(stat, xattrsOf(opened)));
    below.set(directory, path);
    return directory;
  };
  const top = view.stat('');
  if (!top) throw new AtollError('internal', 'the layers below have no root');
  const root = bring('', top);
  const adopt = (parent: DirectoryNode, name: ByteString, directory: DirectoryNode): DirectoryNode => {
    parent.entries.set(name, directory);
    parents.set(directory, parent);
    return directory;
  };

  const lookUp = (parent: DirectoryNode, name: ByteString): Found => {
    const node = parent.entries.get(name);
    if (node) return node.kind === 'directory' || node.kind === 'symlink' ? node : { kind: 'other' };
    const directory = below.get(parent);
    if (directory === undefined) return undefined;
    const path = directory === '' ? name : `${directory}/${name}`;
    const stat = view.stat(path);
    if (!stat) return undefined;
    if (stat.isSymbolicLink()) return { kind: 'symlink', target: view.readLink(path) };
    return stat.isDirectory() ? adopt(parent, name, bring(path, stat)) : { kind: 'other' };
  };

  const walk = (start: DirectoryNode, names: ByteString[], missing: Missing) =>
    walkNames({ root, lookUp, parentOf: directory => parents.get(directory) ?? root }, start, names, missing);

  const make = (start: DirectoryNode, names: ByteString[], attributes: Attributes): DirectoryNode => {
    const made = walk(start, names, (parent, name, found) => {
      if (found)
        throw new AtollError('invalid', `${shown(names.join('/'))} can't be a directory: ${shown(name)} is in the way`);
      changed = true;
      return adopt(parent, name, emptyDirectory(attributes));
    });
    return made ?? root;
  };

  return {
    root,
    directory: (path, attributes) => make(root, path.split('/'), attributes),
    child: (parent, name, attributes) => make(parent, [name], attributes),
    findDirectory: path => walk(root, path.split('/'), () => undefined),
    put(parent, name, node) {
      if (parent === root && platformDirectories.some(own => own === name)) throw placeTaken(name);
      if (lookUp(parent, name)?.kind === 'directory')
        throw new AtollError('invalid', `${shown(name)} is a directory and can't be replaced by a file`);
      changed = true;
      parent.entries.set(name, node);
    },
    changed: () => changed,
  };
}

function emptyDirectory(attributes: Attributes): DirectoryNode {
  return { kind: 'directory', attributes, opaque: false, entries: new Map() };
}

/** Follows `names` from `start`; `missing` decides about a name that is missing or no directory. */
function walkNames(
  tree: {
    root: DirectoryNode;
    lookUp(parent: DirectoryNode, name: ByteString): Found;
    parentOf(directory: DirectoryNode): DirectoryNode;
  },
  start: DirectoryNode,
  names: ByteString[],
  missing: Missing,
): DirectoryNode | undefined {
  let directory = start;
  let followed = 0;
  const pending = names.toReversed();
  for (let name; (name = pending.pop()) !== undefined;) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      directory = tree.parentOf(directory);
      continue;
    }
    const found = tree.lookUp(directory, name);
    if (found?.kind === 'symlink' && followed++ < linksFollowedMax) {
      if (found.target.startsWith('/')) directory = tree.root;
      pending.push(...found.target.split('/').toReversed());
      continue;
    }
    const next = found?.kind === 'directory' ? found : missing(directory, name, found);
    if (!next) return undefined;
    directory = next;
  }
  return directory;
}

function shown(name: ByteString): string {
  return Buffer.from(name, 'latin1').toString();
}
