import { posix } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { User } from './users.ts';

/** Longer ones can't be opened anyway (PATH_MAX of Linux is 4096 bytes). */
const pathLengthMax = 4096;

/**
 * Resolves a client's path: empty is the default working directory, or else the home directory; `~` is the home
 * directory; an absolute path stays exactly as given; anything else is below the home directory. Errors: `invalid`
 * beyond the kernel's length of a path.
 */
export function resolvePath(path: string, user: User, defaultWorkdir: string): string {
  if (path.length > pathLengthMax)
    throw new AtollError('invalid', `the path has ${path.length} characters, more than ${pathLengthMax}`);
  if (path.includes('\0')) throw new AtollError('invalid', 'the path contains a zero byte');
  if (path === '') return defaultWorkdir === '' ? user.home : resolvePath(defaultWorkdir, user, '');
  if (path === '~') return user.home;
  if (path.startsWith('~/')) return posix.join(user.home, path.slice(2));
  if (path.startsWith('~'))
    throw new AtollError('invalid', `'${path}': other users' home directories can't be named with ~`);
  if (path.startsWith('/')) return path;
  return posix.join(user.home, path);
}
