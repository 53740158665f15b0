import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { forEachParallel } from './concurrency/parallel.ts';

/** Files that are synced at once: one commit of the file system's journal serves them all. */
const syncedAtOnce = 8;

/** Makes the content of a file, or the names in a folder, survive a loss of power. */
export async function syncPath(path: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.sync();
}

/** The same for a folder and everything in it; follows no link out of it. */
export async function syncTree(folder: string): Promise<void> {
  await forEachParallel(await readdir(folder, { withFileTypes: true }), syncedAtOnce, async entry => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await syncTree(path);
    else if (entry.isFile()) await syncPath(path);
  });
  await syncPath(folder);
}
