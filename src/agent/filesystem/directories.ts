import { chown, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { User } from '../sandbox/users.ts';
import { errnoOf } from './errno.ts';

/**
 * Creates a directory and the missing ones above it, mode 0755 and owned by `user`. True: it created the last one;
 * false: something was already there. Throws what mkdir(2) throws, e.g. ENOTDIR if a file is in the way.
 */
export async function makeDirectories(path: string, user: User): Promise<boolean> {
  try {
    return await makeOne(path, user);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
  }
  await makeDirectories(dirname(path), user);
  // Only once: below a dangling link, something is missing again and again.
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

/** Whether `path` is a directory or a link to one; false for a path that can't be examined. */
async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    facts => facts.isDirectory(),
    () => false,
  );
}
