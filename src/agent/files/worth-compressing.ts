import type { FileHandle } from 'node:fs/promises';
import { gzipLevel } from './gzip.ts';

/** Files up to this size are compressed as asked: it takes less than looking would gain. */
const smallBytes = 64 << 10;
/** Bytes of each sample. */
const sampleBytes = 32 << 10;
/** Places in the file, as parts of its size, that samples are taken at. */
const samplePlaces = [0, 0.5, 0.9];
/** Compressed samples must be smaller than this part of what they were: pictures, archives and random bytes are not. */
const gainfulPart = 0.9;

/** Says whether gzip makes a file of `size` bytes notably smaller, by samples of it. */
export async function isWorthCompressing(file: FileHandle, size: number): Promise<boolean> {
  // Files whose size only reading tells (proc, sys) have no places to sample.
  if (size <= smallBytes || size === Number.POSITIVE_INFINITY) return true;
  let plainBytes = 0;
  let compressedBytes = 0;
  for (const place of samplePlaces) {
    const { bytesRead, buffer } = await file.read(
      new Uint8Array(sampleBytes),
      0,
      sampleBytes,
      Math.floor(size * place),
    );
    plainBytes += bytesRead;
    compressedBytes += Bun.gzipSync(buffer.subarray(0, bytesRead), { level: gzipLevel }).length;
  }
  return compressedBytes < plainBytes * gainfulPart;
}
