import { join } from 'node:path';
import type { Layout, Slot } from '../../layout.ts';

/** The image of a disk that belongs to no sandbox yet. */
export function slotDisk({ disks }: Pick<Layout, 'disks'>, slot: Slot): string {
  return join(disks, `${slot.name}.img`);
}

/** Where the slot's disk is mounted in the helper's namespace. */
export function slotMountPoint({ mounts }: Pick<Layout, 'mounts'>, slot: Slot): string {
  return join(mounts, slot.name);
}
