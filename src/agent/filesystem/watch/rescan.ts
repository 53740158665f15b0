import type { Stats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import type { TreeEvent } from './tree-event.ts';
import { nameIn, type TreeNode } from './tree-node.ts';

/** Parts of a watched tree that `rescan` needs. */
type RescannedTree = {
  root: TreeNode;
  isRecursive: boolean;
  pathOf(node: TreeNode): Buffer;
  /** Watches a directory that was not known yet. Undefined: it is already gone. */
  add(parent: TreeNode, name: string): Promise<TreeNode | undefined>;
  /** False: another directory has taken the place of the watched one. */
  isInPlace(node: TreeNode): boolean;
  forget(node: TreeNode): void;
  /** Resolves once the event was taken. */
  report(event: TreeEvent): Promise<void>;
};

/**
 * After the kernel's events were lost, looks at a tree and reports its changes since `sinceMs` (epoch milliseconds):
 * entries that are new, written or otherwise changed, and directories that are gone. Other deleted entries have no name
 * any more; so a directory whose list of entries changed is reported as written, which the kernel never does: it means
 * "look again".
 */
export async function rescan(tree: RescannedTree, sinceMs: number): Promise<void> {
  await look(tree, tree.root, sinceMs);
}

async function look(tree: RescannedTree, node: TreeNode, sinceMs: number): Promise<void> {
  const path = tree.pathOf(node);
  const facts = await lstat(path).catch(() => undefined);
  if (!facts) return;
  if (facts.mtimeMs >= sinceMs) await tree.report({ name: nameIn(node), type: 'EVENT_TYPE_WRITE' });
  const entries = await readdir(path, { encoding: 'buffer' }).catch(() => []);
  const names = new Set(entries.map(entry => entry.toString('latin1')));
  for (const [name, child] of node.children) {
    if (names.has(name)) continue;
    tree.forget(child);
    await tree.report({ name: nameIn(node, name), type: 'EVENT_TYPE_REMOVE' });
  }
  for (const name of names) await lookAtEntry(tree, node, name, sinceMs);
}

async function lookAtEntry(tree: RescannedTree, node: TreeNode, name: string, sinceMs: number): Promise<void> {
  const facts = await lstat(Buffer.concat([tree.pathOf(node), Buffer.from(`/${name}`, 'latin1')])).catch(
    () => undefined,
  );
  if (!facts) return;
  const path = nameIn(node, name);
  const wasReplaced = forgetReplaced(tree, node.children.get(name), facts);
  if (wasReplaced) await tree.report({ name: path, type: 'EVENT_TYPE_REMOVE' });
  const isNew = wasReplaced || facts.birthtimeMs >= sinceMs;
  if (isNew) await tree.report({ name: path, type: 'EVENT_TYPE_CREATE' });
  if (facts.isDirectory() && tree.isRecursive) {
    const child = node.children.get(name) ?? (await tree.add(node, name));
    if (child) await look(tree, child, sinceMs);
  } else if (facts.mtimeMs >= sinceMs && (!isNew || facts.size > 0)) {
    await tree.report({ name: path, type: 'EVENT_TYPE_WRITE' });
  } else if (facts.ctimeMs >= sinceMs && !isNew) {
    await tree.report({ name: path, type: 'EVENT_TYPE_CHMOD' });
  }
}

/**
 * Whether something else has taken the place of `known`: then the kernel watches a directory that is gone or has moved.
 */
function forgetReplaced(tree: RescannedTree, known: TreeNode | undefined, facts: Stats): boolean {
  if (!known || (facts.isDirectory() && tree.isInPlace(known))) return false;
  tree.forget(known);
  return true;
}
