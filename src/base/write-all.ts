import { writeSync } from 'node:fs';

/**
 * Writes all of `bytes`, however many calls that takes: one stops short where the disk becomes full, and is no error.
 * Without `position`, where the open file is.
 */
export function writeAll(fd: number, bytes: Uint8Array, position: number | null = null): void {
  for (let done = 0; done < bytes.length;)
    done += writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done);
}
