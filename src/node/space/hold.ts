import { readFileSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { isGone } from '../../base/error.ts';
import type { MountedDisk } from './mounted-disks.ts';

/**
 * What ext4 keeps back of every file system by itself: a fiftieth, and no more than this. Source:
 * ext4_calculate_resv_clusters in Linux.
 */
const defaultClustersMax = 4096;
const defaultShare = 50;

const knobOf = ({ device }: MountedDisk) => `/sys/fs/ext4/${device}/reserved_clusters`;

/**
 * Lets a mounted disk take so many bytes more and no new block beyond them: whatever would need one gets a real ENOSPC
 * inside, root too, while reading, changing in place and deleting go on. The rest of its free blocks are in the reserve
 * that ext4 keeps for its own needs. With 0 it can't take either what is freed inside from now on. Source:
 * Documentation/admin-guide/ext4.rst of Linux, reserved_clusters.
 */
export async function setRoom(disk: MountedDisk, root: string, bytes: number): Promise<void> {
  try {
    const { blocks, bfree, bsize } = await statfs(join(root, disk.point));
    const least = Math.min(Math.floor(blocks / defaultShare), defaultClustersMax);
    const wanted = bytes === 0 ? blocks - 1 : Math.max(least, bfree - Math.floor(bytes / bsize));
    const now = Number(readFileSync(knobOf(disk), 'utf8'));
    const isDefault = wanted === least && now <= defaultClustersMax;
    if (now !== wanted && !isDefault) writeFileSync(knobOf(disk), `${wanted}\n`);
  } catch (error) {
    if (!isGone(error)) throw error; // it was unmounted meanwhile
  }
}
