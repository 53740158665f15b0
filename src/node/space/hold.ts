import { readFileSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { isGone } from '../sandbox/record.ts';
import type { MountedDisk } from './mounted-disks.ts';

/** What ext4 keeps back of every file system by itself: a fiftieth, and no more than this. Source: ext4_calculate_resv_clusters in Linux. */
const defaultClustersMax = 4096;
const defaultShare = 50;

const knobOf = ({ device }: MountedDisk) => `/sys/fs/ext4/${device}/reserved_clusters`;

/**
 * Lets a mounted disk take no new block, or take them again. Held, whatever would need one gets a real ENOSPC inside, root too, while
 * reading, changing in place and deleting go on: all its free blocks are in the reserve that ext4 keeps for its own needs.
 * Source: Documentation/admin-guide/ext4.rst of Linux, reserved_clusters.
 */
export async function setHeld(disk: MountedDisk, root: string, held: boolean): Promise<void> {
  try {
    const { blocks } = await statfs(join(root, disk.point));
    const wanted = held ? blocks - 1 : Math.min(Math.floor(blocks / defaultShare), defaultClustersMax);
    const now = Number(readFileSync(knobOf(disk), 'utf8'));
    if (held ? now !== wanted : now > defaultClustersMax) writeFileSync(knobOf(disk), `${wanted}\n`);
  } catch (error) {
    if (!isGone(error)) throw error; // it was unmounted meanwhile
  }
}
