import { constants } from 'node:fs';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { systemCodeOf } from '../../base/error.ts';
import type { NewVolumeEntry } from '../../protocol/volume.ts';
import { openBeneath, type Opened } from './beneath.ts';
import { splitPath } from './clean-path.ts';

/** What parents that nobody asked for by name may be used for: everything. */
const parentMode = 0o777;

/**
 * Opens the directory that a new entry goes into, made with its parents where they are missing and `force` allows it.
 */
export async function openDirectoryFor(top: Opened, directory: string, entry: NewVolumeEntry): Promise<Opened> {
  try {
    return openBeneath(top, directory, constants.O_DIRECTORY);
  } catch (error) {
    if (!entry.force || systemCodeOf(error) !== 'ENOENT') throw error;
  }
  const { directory: above, name } = splitPath(directory);
  using parent = await openDirectoryFor(top, above, entry);
  await makeIn(parent, name, { ...entry, mode: parentMode }).catch((error: unknown) => {
    if (systemCodeOf(error) !== 'EEXIST') throw error; // somebody else has just made it
  });
  return openBeneath(parent, name, constants.O_DIRECTORY);
}

/** Makes a directory. What takes its place meanwhile, a link say, is left alone. Errors: those of the system calls. */
export async function makeIn(parent: Opened, name: string, { uid, gid, mode }: NewVolumeEntry): Promise<void> {
  await mkdir(`${parent.path}/${name}`, 0o700);
  using made = openBeneath(parent, name, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  await chown(made.path, uid, gid);
  await chmod(made.path, mode);
}
