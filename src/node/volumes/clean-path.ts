import { posix } from 'node:path';
import { AtollError } from '../../base/error.ts';

/** The kernel's own bound (PATH_MAX). */
const pathBytesMax = 4095;

/** A path of a volume without leading slash, dots and empty parts; empty for the root. Fails with `invalid`. */
export function cleanPath(path: string): string {
  if (path === '') throw new AtollError('invalid', 'path: must not be empty');
  if (path.includes('\0')) throw new AtollError('invalid', 'path: holds a NUL character');
  if (Buffer.byteLength(path) > pathBytesMax)
    throw new AtollError('invalid', `path: longer than ${pathBytesMax} bytes`);
  const clean = posix.normalize(`/${path}`).slice(1);
  return clean.endsWith('/') ? clean.slice(0, -1) : clean;
}

/** The directory and the name of a clean path that is not the root. */
export function splitPath(clean: string): { directory: string; name: string } {
  const slash = clean.lastIndexOf('/');
  return { directory: clean.slice(0, Math.max(slash, 0)), name: clean.slice(slash + 1) };
}
