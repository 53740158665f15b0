import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Makes the content of a file, or the names in a folder, survive a loss of power. */
export async function syncPath(path: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.sync();
}

/** The same for a folder and all that is in it; nothing is followed out of it. */
export async function syncTree(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await syncTree(path);
    else if (entry.isFile()) await syncPath(path);
  }
  await syncPath(folder);
}
