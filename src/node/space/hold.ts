import { readFileSync, writeFileSync } from 'node:fs';
import { isGone } from '../../base/error.ts';
import type { DiskFill, MountedDisk } from './mounted-disks.ts';

/**
 * What ext4 reserves in every file system by itself: a fiftieth, and no more than this. Source:
 * ext4_calculate_resv_clusters in Linux.
 */
const defaultClustersMax = 4096;
const defaultShare = 50;

const knobOf = ({ device }: MountedDisk) => `/sys/fs/ext4/${device}/reserved_clusters`;

/** Keeps mounted disks from growing, each by the reserve that ext4 keeps for its own needs. */
export class DiskRooms {
  /** Devices with ext4's own reserve, which every newly mounted disk has. */
  readonly #untouched = new Set<string>();

  /**
   * Lets a mounted disk take `bytes` more and no new block beyond them: a write that needs one gets a real ENOSPC
   * inside, even as root, while reading, changing in place and deleting still work. The rest of its free blocks are in
   * the reserve. With 0, it can't even take blocks that are freed inside from now on. Source:
   * Documentation/admin-guide/ext4.rst of Linux, reserved_clusters.
   */
  set(disk: MountedDisk, { blocks, bfree, bsize }: DiskFill, bytes: number): void {
    const least = Math.min(Math.floor(blocks / defaultShare), defaultClustersMax);
    const wanted = bytes === 0 ? blocks - 1 : Math.max(least, bfree - Math.floor(bytes / bsize));
    // Each look calls this for every disk: most knobs are read only once.
    if (wanted === least && this.#untouched.has(disk.device)) return;
    this.#untouched.delete(disk.device);
    try {
      const now = Number(readFileSync(knobOf(disk), 'utf8'));
      if (wanted === least && now <= defaultClustersMax) this.#untouched.add(disk.device);
      else if (now !== wanted) writeFileSync(knobOf(disk), `${wanted}\n`);
    } catch (error) {
      if (!isGone(error)) throw error; // it was unmounted meanwhile
    }
  }
}
