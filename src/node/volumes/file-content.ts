import { constants, openSync } from 'node:fs';
import { lstat, open, readdir, rename, stat, unlink, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { NewVolumeEntry, VolumeEntry } from '../../protocol/volume.ts';
import { nameFile, openBeneath, openTop, type Opened } from './beneath.ts';
import { splitPath } from './clean-path.ts';
import { contentError } from './content-error.ts';
import { entryIn } from './entry.ts';
import { openDirectoryFor } from './parents.ts';

/**
 * open(2): a file without a name, which is gone with its descriptor unless it gets a name. These are its bits on all
 * of our architectures, except O_DIRECTORY.
 */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

/** A place on the same file system outside of the volume's root. */
const outsideOf = (root: string) => dirname(root);
const uploadSuffix = '.upload';

/** Removes what a crash left of uploads that were about to get their names. */
export async function removeUploads(root: string): Promise<void> {
  for (const name of await readdir(outsideOf(root)))
    if (name.endsWith(uploadSuffix)) await unlink(join(outsideOf(root), name));
}

/**
 * Opens a regular file for reading; links on the way are followed inside the volume. The caller owns the descriptor.
 */
export async function openFile(root: string, path: string): Promise<{ descriptor: number; sizeBytes: number }> {
  try {
    using top = openTop(root);
    using opened = openBeneath(top, path);
    const facts = await stat(opened.path);
    if (!facts.isFile())
      throw new AtollError(
        'invalid',
        `path: ${JSON.stringify(path)} is ${facts.isDirectory() ? 'a directory' : 'no regular file'}`,
      );
    // A program in a sandbox may have a lease on its file: opening it would block until that is over, and the platform
    // with it.
    return { descriptor: openSync(opened.path, constants.O_RDONLY | constants.O_NONBLOCK), sizeBytes: facts.size };
  } catch (error) {
    throw contentError(error, path);
  }
}

/** A file that is being written and has no name yet. Call one of `keep` and `drop`. */
export type NewFile = {
  file: FileHandle;
  /** Puts it in its place, complete and on the disk; replaces what is there if `force` allows that. */
  keep(): Promise<VolumeEntry>;
  drop(): Promise<void>;
};

/** Begins a file that appears at its path complete or not at all. Errors: those of a volume's content. */
export async function beginFile(root: string, path: string, entry: NewVolumeEntry): Promise<NewFile> {
  const { directory, name } = splitPath(path);
  if (name === '') throw new AtollError('conflict', 'path: the root of the volume is a directory');
  await using undo = new AsyncDisposableStack();
  try {
    using top = openTop(root);
    const parent = undo.use(await openDirectoryFor(top, directory, entry));
    await checkPlace(parent, name, path, entry.force);
    const file = await open(parent.path, O_TMPFILE | constants.O_WRONLY, 0o600);
    undo.defer(() => file.close());
    const opened = undo.move();
    const drop = () => opened.disposeAsync();
    return {
      file,
      drop,
      async keep() {
        try {
          await file.chown(entry.uid, entry.gid);
          await file.chmod(entry.mode);
          await file.sync();
          await place(root, file, parent, name, entry.force);
          await syncDirectory(parent);
          return await entryIn(parent, name, path);
        } catch (error) {
          throw contentError(error, path);
        } finally {
          await drop();
        }
      },
    };
  } catch (error) {
    // ext4's word for a new file in a directory that a sandbox has just removed.
    throw contentError(error, path, { ENOTDIR: 'invalid', EPERM: 'not_found' });
  }
}

/** Reports at once what would otherwise show only after the last byte. */
async function checkPlace(parent: Opened, name: string, path: string, force: boolean): Promise<void> {
  const known = await lstat(`${parent.path}/${name}`).catch(() => undefined);
  if (known && (!force || known.isDirectory())) {
    throw new AtollError(
      'conflict',
      `path: ${JSON.stringify(path)} ${known.isDirectory() ? 'is a directory' : 'exists already; force replaces it'}`,
    );
  }
}

async function place(root: string, file: FileHandle, parent: Opened, name: string, force: boolean): Promise<void> {
  if (!force) return nameFile(file.fd, parent, name);
  // A file can't be given a name that is taken, but it can be renamed to it, from a place that no sandbox sees or
  // watches.
  using outside = openTop(outsideOf(root));
  const temporary = `${outside.path}/${newUuid()}${uploadSuffix}`;
  nameFile(file.fd, outside, basename(temporary));
  await rename(temporary, `${parent.path}/${name}`).catch(async (error: unknown) => {
    await unlink(temporary);
    throw error;
  });
}

async function syncDirectory(parent: Opened): Promise<void> {
  const directory = await open(`${parent.path}/.`, constants.O_RDONLY | constants.O_DIRECTORY);
  await directory.sync().finally(() => directory.close());
}
