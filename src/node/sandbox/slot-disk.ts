import { join } from 'node:path';
import type { NodeContext } from '../context.ts';
import type { Slot } from '../layout.ts';

/** The image of a disk that belongs to no sandbox yet. */
export function slotDisk(node: NodeContext, slot: Slot): string {
  return join(node.layout.disks, `${slot.name}.img`);
}

/** Where the slot's disk is mounted in the helper's namespace. */
export function slotMountPoint(node: NodeContext, slot: Slot): string {
  return join(node.layout.mounts, slot.name);
}
