import { statfsSync } from 'node:fs';
import { AtollError, systemCodeOf } from './error.ts';

const bytesPerMiB = 1024 ** 2;

/** Bytes that a program may still write to the file system that `path` is on. */
export function freeBytesOf(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/** Fails with `no_space` and the figures if writing `what` would leave fewer than `reserveBytes` of `freeBytes`. */
export function requireRoom(
  what: string,
  { freeBytes, reserveBytes, bytes = 0 }: { freeBytes: number; reserveBytes: number; bytes?: number },
): void {
  if (freeBytes - bytes >= reserveBytes) return;
  const needed = bytes > 0 ? `, ${mib(bytes)} are needed` : '';
  throw new AtollError(
    'no_space',
    `There is no room on the platform's disk for ${what}: ${mib(Math.max(0, freeBytes))} are free${needed}, and ` +
      `${mib(reserveBytes)} are kept back`,
    { detail: 'disk_reserve', fields: { freeBytes, bytes, reserveBytes } },
  );
}

/** A file system with less free space counts as full: some keep that much for themselves. */
const fullBelowBytes = 16 * bytesPerMiB;

/** Says whether a system call failed for want of room: on the disk, or within a quota (write(2)). */
export function isNoSpace(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(systemCodeOf(error));
}

/**
 * The code of the error for a program that failed while it wrote to the file system of `path`. A program gives its
 * reason in words alone, so this looks at the file system. Call it before you remove the program's leftovers.
 */
export function failedWriteCode(path: string): 'no_space' | 'internal' {
  const { bavail, bsize, files, ffree } = statfsSync(path);
  const isFull = bavail * bsize < fullBelowBytes || (files > 0 && ffree === 0);
  return isFull ? 'no_space' : 'internal';
}

const mib = (bytes: number) => `${Math.floor(bytes / bytesPerMiB)} MiB`;
