import { basename, join } from 'node:path';
import type { NodeContext } from '../context.ts';
import { slotOf } from '../layout.ts';
import { slotDisk, slotMountPoint } from './slot-disk.ts';

const volumePrefix = 'volume-';

/** The image of a disk by where it is mounted; undefined for one that nobody writes to. The kernel knows it by a name that is gone. */
export function imagesByPoint(node: NodeContext): (point: string) => string | undefined {
  const ofSandboxes = new Map([...node.running.values()].map(({ record }) => [slotMountPoint(node, slotOf(node.layout.installation, record.slot)), node.records.diskOf(record.sandboxId)]));
  return point => {
    const known = ofSandboxes.get(point);
    if (known !== undefined) return known;
    const name = basename(point);
    if (name.startsWith(volumePrefix)) return join(node.layout.volumes, name.slice(volumePrefix.length), 'disk.img');
    const [, number] = /^s(\d{1,4})$/.exec(name) ?? [];
    return number === undefined ? undefined : slotDisk(node, slotOf(node.layout.installation, Number(number)));
  };
}
