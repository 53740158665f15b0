import { expect, test } from 'bun:test';
import { layoutOf, slotOf } from '../layout.ts';
import { imagesByPoint } from './image-at.ts';
import { slotDisk, slotMountPoint } from './slot/slot-disk.ts';
import type { Sandboxes } from './state/sandboxes.ts';

test('the image of a disk is found by where that is mounted', () => {
  const layout = layoutOf('/srv/atoll', '/run/atoll/3', 3);
  const running = [{ sandboxId: 'i1', processes: { slot: slotOf(3, 7) } }];
  const sandboxes = { running: () => running } as unknown as Sandboxes;
  const imageAt = imagesByPoint(sandboxes, { diskOf: id => `/disks/${id}.img` }, layout);
  const pointOf = (number: number) => slotMountPoint(layout, slotOf(3, number));
  expect(imageAt(pointOf(7))).toBe('/disks/i1.img');
  // The disk of a standby sandbox.
  expect(imageAt(pointOf(8))).toBe(slotDisk(layout, slotOf(3, 8)));
  expect(imageAt('/run/atoll/3/mounts/volume-v1')).toBe(`${layout.volumes}/v1/disk.img`);
  for (const point of ['/', '/run/atoll/3/mounts/restore-s7', '/mnt/s', '/mnt/s12345'])
    expect(imageAt(point)).toBeUndefined();
});
