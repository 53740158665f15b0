import { readdir, rmdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { segmentsIn } from './segments.ts';

type Bounds = {
  /** Files without a write since then are removed. */
  oldestMs: number;
  /** How much of all the others may stay. */
  bytesMax: number;
};

/**
 * Removes what is too old, and then the oldest files of all while there is too much. Answers the sandboxes of which
 * nothing is left.
 */
export async function pruneSegments(directory: string, { oldestMs, bytesMax }: Bounds): Promise<string[]> {
  const files: { path: string; bytes: number; writtenMs: number }[] = [];
  const sandboxes = await readdir(directory);
  for (const sandboxId of sandboxes) {
    for (const name of await segmentsIn(join(directory, sandboxId))) {
      const path = join(directory, sandboxId, name);
      const { size, mtimeMs } = await stat(path);
      files.push({ path, bytes: size, writtenMs: mtimeMs });
    }
  }
  let bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  for (const file of files.sort((a, b) => a.writtenMs - b.writtenMs)) {
    if (file.writtenMs >= oldestMs && bytes <= bytesMax) break;
    await unlink(file.path);
    bytes -= file.bytes;
  }
  const emptied = await Promise.all(
    sandboxes.map(async sandboxId => ((await isRemoved(join(directory, sandboxId))) ? [sandboxId] : [])),
  );
  return emptied.flat();
}

/** This removes only an empty directory. */
const isRemoved = (directory: string): Promise<boolean> =>
  rmdir(directory).then(
    () => true,
    () => false,
  );
