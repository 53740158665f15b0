import { basename, join } from 'node:path';
import { slotOf, type Layout } from '../layout.ts';
import type { Records } from './records/record-store.ts';
import { slotDisk, slotMountPoint } from './slot/slot-disk.ts';
import type { Sandboxes } from './state/sandboxes.ts';

const volumePrefix = 'volume-';

/**
 * Finds the image of a disk by its mount point; undefined for a disk that nobody writes to. The kernel knows the image
 * by a name that is gone.
 */
export function imagesByPoint(
  sandboxes: Sandboxes,
  records: Pick<Records, 'diskOf'>,
  layout: Layout,
): (point: string) => string | undefined {
  const ofSandboxes = new Map(
    sandboxes
      .running()
      .map(({ sandboxId, processes }) => [slotMountPoint(layout, processes.slot), records.diskOf(sandboxId)]),
  );
  return point => {
    const known = ofSandboxes.get(point);
    if (known !== undefined) return known;
    const name = basename(point);
    if (name.startsWith(volumePrefix)) return join(layout.volumes, name.slice(volumePrefix.length), 'disk.img');
    const [, number] = /^s(\d{1,4})$/.exec(name) ?? [];
    return number === undefined ? undefined : slotDisk(layout, slotOf(layout.installation, Number(number)));
  };
}
