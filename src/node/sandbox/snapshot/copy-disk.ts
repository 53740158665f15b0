import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Disks } from '../../disks/disks.ts';
import type { Layout } from '../../layout.ts';

/** A mounted copy of a disk, until disposal. */
export type DiskCopy = AsyncDisposable & {
  /** Where it is mounted in the helper's namespace. */
  mountPoint: string;
};

/** Mounts the copy of a disk; `take` makes the copy at the path that it gets. */
export async function mountDiskCopy(
  { layout, disks }: { layout: Layout; disks: Disks },
  take: (image: string) => Promise<void>,
): Promise<DiskCopy> {
  const directory = mkdtempSync(join(layout.snapshots, 'copying-'));
  const image = join(directory, 'disk.img');
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rm(directory, { recursive: true, force: true }));
  await take(image);
  const mountPoint = mkdtempSync(join(layout.mounts, 'snapshot-'));
  undo.defer(() => disks.close(mountPoint));
  await disks.open(image, mountPoint);
  const disposal = undo.move();
  return { mountPoint, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}
