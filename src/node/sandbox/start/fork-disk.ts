import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { newUuid } from '../../../base/id.ts';
import { copyImage } from '../../disks/copy-image.ts';
import type { Disks } from '../../disks/disks.ts';
import type { Layout } from '../../layout.ts';
import { pathInHelper, type Helper } from '../../native/helper.ts';
import { diskFile } from '../../snapshot/manifest.ts';
import { originFile, originText } from './origin.ts';

/** The build that a sandbox is made from. */
type Origin = { templateId: string; buildId: string };

type DiskParts = { layout: Layout; helper: Helper; disks: Disks };

/**
 * Makes the disk of a sandbox that begins with the processes of a snapshot: every file has the inode that they know.
 * `origin`: the build that the disk then names as its sandbox's; null: the same as in the snapshot.
 */
export async function makeDiskOfSnapshot(
  parts: DiskParts,
  directory: string,
  { image, diskMiB, origin }: { image: string; diskMiB: number; origin: Origin | null },
): Promise<void> {
  const from = join(directory, diskFile);
  if (!existsSync(from)) return makeBareDisk(parts, image, diskMiB);
  await copyImage(parts.helper, { from, to: image, what: "the snapshot's disk", kind: 'ahead' });
  if (origin) await recordOrigin(parts, image, origin);
}

/** Writes onto a disk which build its sandbox was made from. */
async function recordOrigin({ layout, helper, disks }: DiskParts, disk: string, origin: Origin): Promise<void> {
  const mountPoint = join(layout.mounts, `origin-${newUuid()}`);
  await disks.open(disk, mountPoint);
  try {
    const file = join(pathInHelper({ helper }, mountPoint), 'upper', originFile);
    await rm(file, { recursive: true, force: true }); // whatever the start command has put there, however much
    writeFileSync(file, originText(origin), { mode: 0o644, flag: 'wx' });
  } finally {
    await disks.close(mountPoint);
  }
}

/** Makes an empty disk: the files of every new disk would hide those that the processes of a snapshot know. */
async function makeBareDisk({ layout, helper, disks }: DiskParts, image: string, diskMiB: number): Promise<void> {
  const mountPoint = join(layout.mounts, `bare-${newUuid()}`);
  await disks.create(image, diskMiB, mountPoint);
  try {
    const upper = join(pathInHelper({ helper }, mountPoint), 'upper');
    for (const name of readdirSync(upper)) rmSync(join(upper, name), { recursive: true });
  } finally {
    await disks.close(mountPoint);
  }
}
