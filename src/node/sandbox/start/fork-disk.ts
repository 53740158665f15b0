import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Disks } from '../../disks/disks.ts';
import type { Layout } from '../../layout.ts';
import { pathInHelper, type Helper } from '../../native/helper.ts';
import { originFile, originText } from './origin.ts';

type DiskParts = { layout: Layout; helper: Helper; disks: Disks };

/** Says on a disk which build its sandbox was made from. */
export async function recordOrigin(
  { layout, helper, disks }: DiskParts,
  disk: string,
  { sandboxId, image }: { sandboxId: string; image: { templateId: string; buildId: string } },
): Promise<void> {
  const mountPoint = join(layout.mounts, `origin-${sandboxId}`);
  await disks.open(disk, mountPoint);
  try {
    const file = join(pathInHelper({ helper }, mountPoint), 'upper', originFile);
    await rm(file, { recursive: true, force: true }); // whatever the start command has put there, however much
    writeFileSync(file, originText(image), { mode: 0o644, flag: 'wx' });
  } finally {
    await disks.close(mountPoint);
  }
}

/** Makes a disk with nothing on it: what every new one has would hide what the processes of a snapshot know. */
export async function makeBareDisk(
  { layout, helper, disks }: DiskParts,
  image: string,
  sandboxId: string,
  diskMiB: number,
): Promise<void> {
  const mountPoint = join(layout.mounts, `bare-${sandboxId}`);
  await disks.create(image, diskMiB, mountPoint);
  try {
    const upper = join(pathInHelper({ helper }, mountPoint), 'upper');
    for (const name of readdirSync(upper)) rmSync(join(upper, name), { recursive: true });
  } finally {
    await disks.close(mountPoint);
  }
}
