import { writeSync } from 'node:fs';

/**
 * Writes all of `bytes`, in as many calls as that takes: a single one stops short when the disk becomes full, without
 * an error. Without `position`, it writes at the open file's position.
 */
export function writeAll(fd: number, bytes: Uint8Array, position: number | null = null): void {
  for (let done = 0; done < bytes.length;)
    done += writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done);
}
