import { readlinkSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { unsuitable } from './request.ts';

/**
 * Throws `invalid` where an open file is one of the agent's own: what is in its /proc directory, and its state with the sandbox's
 * tokens. Its /proc/self and /dev/fd lead there, and so do links to them; only the open file says where it is.
 */
export function refuseOwn(file: FileHandle, path: string): void {
  const place = readlinkSync(`/proc/self/fd/${file.fd}`);
  const own = [`/proc/${process.pid}/`, '/proc/1/', '/memfd:'];
  if (own.some(beginning => place.startsWith(beginning))) throw unsuitable(path, 'of the agent');
}
