import { chown, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { User } from '../sandbox/users.ts';
import { errnoOf } from './errno.ts';

/**
 * Makes a directory and what is missing above it, mode 0755 and owned by `user`. True: it made the last one;
 * false: something was there. Throws what mkdir(2) throws, e.g. ENOTDIR where a file is in the way.
 */
export async function makeDirectories(path: string, user: User): Promise<boolean> {
  try {
    return await makeOne(path, user);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
  }
  await makeDirectories(dirname(path), user);
  // Once: below a link that leads nowhere something is missing again and again.
  return makeOne(path, user);
}

async function makeOne(path: string, user: User): Promise<boolean> {
  try {
    await mkdir(path, 0o755);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
  await chown(path, user.uid, user.gid);
  return true;
}

/** Makes what is missing above `path`. */
export async function makeParents(path: string, user: User): Promise<void> {
  const parent = dirname(path);
  if (!(await isDirectory(parent))) await makeDirectories(parent, user);
}

/** Says whether `path` is a directory or a link to one; false for a path that can't be looked at. */
async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    facts => facts.isDirectory(),
    () => false,
  );
}
