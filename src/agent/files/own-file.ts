import { readlinkSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { unsuitable } from './request.ts';

/**
 * Refuses (`invalid`) open files of the agent's own: its /proc directory, and its state with the sandbox's tokens.
 * /proc/self, /dev/fd and links lead there; only the open file shows its place. What /proc/net leads to is of the whole
 * sandbox, and every process there may read it.
 */
export function refuseOwn(file: FileHandle, path: string): void {
  const place = readlinkSync(`/proc/self/fd/${file.fd}`);
  const own = [`/proc/${process.pid}/`, '/proc/1/', '/memfd:'];
  if (place.startsWith(`/proc/${process.pid}/net/`)) return;
  if (own.some(beginning => place.startsWith(beginning))) throw unsuitable(path, 'of the agent');
}
