import { statfsSync } from 'node:fs';
import { AtollError } from './error.ts';

const bytesPerMiB = 1024 ** 2;

/** Bytes that a program may still write to the file system that `path` is on. */
export function freeBytesOf(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/** Fails with `no_space`, with the figures, where `what` would leave fewer than `reserveBytes` of `freeBytes`. */
export function requireRoom(what: string, { freeBytes, reserveBytes, bytes = 0 }: { freeBytes: number; reserveBytes: number; bytes?: number }): void {
  if (freeBytes - bytes >= reserveBytes) return;
  const needed = bytes > 0 ? `, ${mib(bytes)} are needed` : '';
  throw new AtollError('no_space', `There is no room on the platform's disk for ${what}: ${mib(Math.max(0, freeBytes))} are free${needed}, and ${mib(reserveBytes)} are kept back`, {
    detail: 'disk_reserve',
    fields: { freeBytes, bytes, reserveBytes },
  });
}

const mib = (bytes: number) => `${Math.floor(bytes / bytesPerMiB)} MiB`;
