import { constants } from 'node:fs';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { systemCodeOf } from '../../base/error.ts';
import type { NewVolumeEntry } from '../../protocol/volume.ts';
import { openBeneath, type Opened } from './beneath.ts';

/** The permissions of parents that nobody asked for by name: everything. */
const parentMode = 0o777;

/**
 * Opens the directory that a new entry goes into; if it is missing and `force` allows it, makes it with its parents.
 */
export async function openDirectoryFor(top: Opened, directory: string, entry: NewVolumeEntry): Promise<Opened> {
  const whole = openedIfThere(top, directory);
  if (whole) return whole;
  if (!entry.force) throw Object.assign(new Error(`ENOENT: ${directory}`), { code: 'ENOENT' });
  const names = directory.split('/');
  const known = partsThere(top, names);
  let parent = openBeneath(top, names.slice(0, known).join('/'), constants.O_DIRECTORY);
  try {
    for (const name of names.slice(known)) {
      await makeIn(parent, name, { ...entry, mode: parentMode }).catch((error: unknown) => {
        if (systemCodeOf(error) !== 'EEXIST') throw error; // somebody else has just made it
      });
      const made = openBeneath(parent, name, constants.O_DIRECTORY);
      parent[Symbol.dispose]();
      parent = made;
    }
    return parent;
  } catch (error) {
    parent[Symbol.dispose]();
    throw error;
  }
}

/** How many parts of a path exist: everything below a missing part is missing, too. */
function partsThere(top: Opened, names: readonly string[]): number {
  let [there, missing] = [0, names.length];
  while (missing - there > 1) {
    const middle = Math.floor((there + missing) / 2);
    using found = openedIfThere(top, names.slice(0, middle).join('/'));
    if (found) there = middle;
    else missing = middle;
  }
  return there;
}

function openedIfThere(top: Opened, directory: string): Opened | undefined {
  try {
    return openBeneath(top, directory, constants.O_DIRECTORY);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return undefined;
  }
}

/** Makes a directory. Leaves alone what takes its place meanwhile, e.g. a link. Errors: those of the system calls. */
export async function makeIn(parent: Opened, name: string, { uid, gid, mode }: NewVolumeEntry): Promise<void> {
  await mkdir(`${parent.path}/${name}`, 0o700);
  using made = openBeneath(parent, name, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  await chown(made.path, uid, gid);
  await chmod(made.path, mode);
}
