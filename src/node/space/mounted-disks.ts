import { readFileSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isGone } from '../../base/error.ts';

/** A disk of a sandbox or a volume that is mounted: an ext4 image on a loop device. */
export type MountedDisk = {
  /** Its mount point in the helper's mount namespace. */
  point: string;
  /** E.g. `loop7`: the name of its knobs in /sys/fs/ext4. */
  device: string;
  /** Whether the file system has given up writing, because the host's disk has failed it. */
  failed: boolean;
};

/**
 * The writable disks below `mounts` in the mount namespace of `pid`. Reads the text once, line by line: it has a few
 * lines for each sandbox. Source: proc_pid_mountinfo(5).
 */
export function mountedDisks(pid: number, mounts: string): MountedDisk[] {
  return parseMountedDisks(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'), mounts);
}

/** The writable disks below `mounts` in the text of a mountinfo. */
export function parseMountedDisks(mountinfo: string, mounts: string): MountedDisk[] {
  const disks = new Map<string, MountedDisk>();
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ', 2);
    const [type, source = '', options = ''] = after.split(' ');
    const [, , , root, point = ''] = before.split(' ');
    // Only the mount of the whole disk, not of a part of it that is shown elsewhere.
    if (type !== 'ext4' || root !== '/' || !source.startsWith('/dev/loop') || !point.startsWith(`${mounts}/`)) continue;
    const flags = options.split(',');
    // Since Linux 6.16 a failed file system still counts as writable, and reports the failure separately.
    const failed = flags.includes('ro') || flags.includes('emergency_ro') || flags.includes('shutdown');
    disks.set(source, { point, device: source.slice('/dev/'.length), failed });
  }
  return [...disks.values()];
}

/** The size of a disk and its free space, in blocks of its file system of `bsize` bytes. */
export type DiskFill = { blocks: number; bfree: number; bsize: number };

/**
 * How full a mounted disk is; undefined: it was unmounted meanwhile. The call is synchronous: the file system has the
 * counts and waits for nothing, and another thread would cost four times as much.
 */
export function fillOf(disk: MountedDisk, root: string): DiskFill | undefined {
  try {
    return statfsSync(join(root, disk.point));
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/**
 * Bytes that a disk has promised and the host's disk has not given to its image yet: writes that are still in memory,
 * and what was set aside inside by fallocate(2). They arrive without another question to the disk's file system.
 * Negative: this much was removed inside and still belongs to the image, and writing it again takes nothing.
 */
export function owedBytes({ blocks, bfree, bsize }: DiskFill, image: string): number {
  try {
    return (blocks - bfree) * bsize - statSync(image).blocks * sectorBytes;
  } catch (error) {
    if (isGone(error)) return 0; // it was unmounted meanwhile
    throw error;
  }
}

/** Unit of `st_blocks`, whatever the file system's blocks are. Source: stat(2). */
const sectorBytes = 512;
