import { mkdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './network.ts';

/** What is left on a machine's full disk. */
const leftBytes = 4 << 20;

/** Mounts a disk of its own on a folder. */
export async function mountDisk(folder: string, sizeMiB: number): Promise<AsyncDisposable> {
  mkdirSync(folder, { recursive: true });
  const image = `${folder}.image`;
  await run('truncate', '-s', `${sizeMiB}M`, image);
  await run('mkfs.ext4', '-q', '-F', '-m', '0', image);
  await run('mount', '-o', 'loop', image, folder);
  return {
    async [Symbol.asyncDispose]() {
      await run('umount', folder);
      rmSync(image);
    },
  };
}

/** Fills the disk of a folder except for this many bytes; answers a function that undoes it. */
export async function fillDisk(folder: string, leaves = leftBytes): Promise<() => void> {
  const { bavail, bsize } = statfsSync(folder);
  const ballast = join(folder, 'ballast');
  await run('fallocate', '-l', String(Math.max(1, bavail * bsize - leaves)), ballast);
  return () => rmSync(ballast);
}
