import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeContext } from '../context.ts';

/** Where builds keep what lives no longer than they do. */
export function scratchDirOf(node: NodeContext): string {
  return join(node.layout.data, 'build-scratch');
}

/** Empties it: what is there was left by a crash. */
export function clearScratch(node: NodeContext): string {
  const dir = scratchDirOf(node);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return dir;
}
