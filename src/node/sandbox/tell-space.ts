import type { NodeContext } from '../context.ts';
import type { MountedDisk } from '../space/mounted-disks.ts';
import { slotOf } from '../layout.ts';
import { slotMountPoint } from './slot-disk.ts';

/** Says in the logs of running sandboxes that they can't write anything new, or can again. */
export function tellSpace(node: NodeContext, held: boolean): void {
  const message = held ? 'the disk of the platform is nearly full: nothing new can be written until there is room' : 'there is room on the disk of the platform again';
  for (const sandboxId of node.running.keys()) node.logs.note(sandboxId, held ? 'error' : 'info', 'sandbox', message, { event: held ? 'disk_full' : 'disk_free' });
}

/** Says of a sandbox whose file system has given up writing what happened, and the way out. */
export function tellFailedDisk(node: NodeContext, disk: MountedDisk): void {
  for (const [sandboxId, { record }] of node.running) {
    if (slotMountPoint(node, slotOf(node.layout.installation, record.slot)) !== disk.point) continue;
    node.log.error('the disk of a sandbox has failed and takes no more changes; a pause with its files and a resume repair it', { sandboxId, device: disk.device });
    node.logs.note(sandboxId, 'error', 'sandbox', 'its disk has failed and is read-only: pause it without memory and resume it, which repairs it', { event: 'disk_failed' });
  }
}
