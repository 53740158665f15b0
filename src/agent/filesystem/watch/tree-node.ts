import type { DirectoryWatcher } from './inotify.ts';

/**
 * A watched directory. It knows only its own name, and its path through its parents: moving one moves everything below
 * it. Names have one character per byte, as file names need not be UTF-8.
 */
export type TreeNode = {
  name: string;
  parent: TreeNode | undefined;
  children: Map<string, TreeNode>;
  /** The kernel's watch, -1 once it is gone. */
  watch: number;
  watcher: DirectoryWatcher | undefined;
  /** Entries that a look found. The kernel's event for them may still come, and is not reported again. */
  found: Set<string>;
  /** Entries that came or went according to the kernel while a look is in progress; undefined otherwise. */
  heard: Set<string> | undefined;
};

/** A directory that is not watched yet. This does not make it a child of `parent`. */
export function newNode(name: string, parent: TreeNode | undefined): TreeNode {
  return { name, parent, children: new Map(), watch: -1, watcher: undefined, found: new Set(), heard: undefined };
}

/** Moves `node` to another place. */
export function moveNode(node: TreeNode, parent: TreeNode, name: string): void {
  detachNode(node);
  node.name = name;
  node.parent = parent;
  parent.children.set(name, node);
}

/** Removes `node` from its parent's children; the node still names its parent. */
export function detachNode(node: TreeNode): void {
  if (node.parent?.children.get(node.name) === node) node.parent.children.delete(node.name);
}

/**
 * The path of `entry` in the directory of `node`, relative to the root of the tree; without an entry, the directory's
 * own. The root is `.`.
 */
export function nameIn(node: TreeNode, entry = ''): string {
  let path = entry;
  for (let at: TreeNode | undefined = node; at?.parent; at = at.parent)
    path = path === '' ? at.name : `${at.name}/${path}`;
  return path === '' ? '.' : path;
}
