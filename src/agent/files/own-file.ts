import { readlinkSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { unsuitable } from './request.ts';

/**
 * Refuses (`invalid`) open files of the agent's own: its /proc directory, and its state with the sandbox's tokens.
 * /proc/self, /dev/fd and links lead there; only the open file shows its place.
 */
export function refuseOwn(file: FileHandle, path: string): void {
  const place = readlinkSync(`/proc/self/fd/${file.fd}`);
  const own = [`/proc/${process.pid}/`, '/proc/1/', '/memfd:'];
  if (own.some(beginning => place.startsWith(beginning))) throw unsuitable(path, 'of the agent');
}
