import { createHash } from 'node:crypto';
import { createReadStream, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Length and SHA-256 (hexadecimal) of a file. */
export type FileSum = { bytes: number; sha256: string };

/** Length and digest of each regular file below a directory, by its path in it. */
export async function sumFiles(root: string, signal?: AbortSignal): Promise<Record<string, FileSum>> {
  const sums: Record<string, FileSum> = {};
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    sums[relative(root, path)] = await sumOf(path, signal);
  }
  return sums;
}

async function sumOf(path: string, signal: AbortSignal | undefined): Promise<FileSum> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    signal?.throwIfAborted();
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { bytes, sha256: hash.digest('hex') };
}
