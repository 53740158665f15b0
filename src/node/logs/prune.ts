import { readdir, rmdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { segmentsIn } from './segments.ts';

type Bounds = {
  /** Files in which nothing was written since then go. */
  oldestMs: number;
  /** What may stay of all the others. */
  bytesMax: number;
};

/**
 * Removes what is too old, and the oldest files of all while there is too much. Answers the sandboxes of which nothing
 * is left.
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

/** Only what is empty can be removed like this. */
const isRemoved = (directory: string): Promise<boolean> =>
  rmdir(directory).then(
    () => true,
    () => false,
  );
