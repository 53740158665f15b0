import { lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathInHelper } from '../native/helper.ts';
import type { NodeContext } from '../context.ts';
import type { Slot } from '../layout.ts';
import { slotMountPoint } from './slot-disk.ts';

/**
 * Directories whose content says what runs now, e.g. which process has a lock: where the operating system boots it finds
 * them as they were installed. They are on the sandbox's disk, so that templates can have something in them.
 */
export const volatile = ['run'];

/** Removes what a sandbox has put into its volatile directories. Its disk is mounted and nothing else uses it. */
export function emptyVolatile(node: NodeContext, slot: Slot): void {
  const upper = join(pathInHelper(node, slotMountPoint(node, slot)), 'upper');
  for (const name of volatile) {
    const directory = join(upper, name);
    // The content is a stranger's: a link in its place leads out of the disk.
    if (!lstatSync(directory, { throwIfNoEntry: false })?.isDirectory()) continue;
    for (const entry of readdirSync(directory)) rmSync(join(directory, entry), { recursive: true, force: true });
  }
}
