import type { FileHandle } from 'node:fs/promises';
import { gzipLevel } from './gzip.ts';

/** Files up to this size are compressed without a check: checking would cost more than it gains. */
const smallBytes = 64 << 10;
/** Bytes of each sample. */
const sampleBytes = 32 << 10;
/** Where samples are taken, as fractions of the file's size. */
const samplePlaces = [0, 0.5, 0.9];
/**
 * Compressed samples must be smaller than this fraction of their size: those of pictures, archives and random bytes are
 * not.
 */
const gainfulPart = 0.9;

/** Whether gzip makes a file of `size` bytes notably smaller, judged by samples. */
export async function isWorthCompressing(file: FileHandle, size: number): Promise<boolean> {
  // Files whose size only reading tells (proc, sys) can't be sampled at fractions of it.
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
