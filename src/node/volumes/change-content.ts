import { chmod, chown, lstat, stat } from 'node:fs/promises';
import { AtollError } from '../../base/error.ts';
import type { NewVolumeEntry, VolumeEntry } from '../../protocol/volume.ts';
import type { Helper } from '../native/helper.ts';
import { openBeneath, openTop } from './beneath.ts';
import { splitPath } from './clean-path.ts';
import { contentError } from './content-error.ts';
import { describe, entryIn } from './entry.ts';
import { makeIn, openDirectoryFor } from './parents.ts';

/** Time to remove a tree with as many files as a volume can hold. */
const removeTimeoutMs = 10 * 60_000;
/** After this long others get their turn: work that copies the volume, or removes from another one. */
const removeTurnMs = 10_000;
/** The exit status of a program that was killed when its time was over: 128, and the number of SIGKILL. */
const killedStatus = 137;

// In all of these, `path` is a clean path and `root` is the volume's content as this process sees it.

/** What is at a path; a link is described itself. */
export async function statEntry(root: string, path: string): Promise<VolumeEntry> {
  try {
    using top = openTop(root);
    const { directory, name } = splitPath(path);
    using parent = openBeneath(top, directory);
    return await entryIn(parent, name, path);
  } catch (error) {
    throw contentError(error, path);
  }
}

/** Makes a directory; one that exists is answered unchanged, if `force` allows that. */
export async function makeDirectory(root: string, path: string, entry: NewVolumeEntry): Promise<VolumeEntry> {
  try {
    using top = openTop(root);
    const { directory, name } = splitPath(path);
    using parent = await openDirectoryFor(top, directory, entry);
    if (!(await isDirectoryIn(parent.path, name))) await makeIn(parent, name, entry);
    else if (!entry.force) throw new AtollError('conflict', `path: ${JSON.stringify(`/${path}`)} exists already`);
    return await entryIn(parent, name, path);
  } catch (error) {
    throw contentError(error, path, { ENOTDIR: 'invalid' });
  }
}

async function isDirectoryIn(parent: string, name: string): Promise<boolean> {
  if (name === '') return true;
  return lstat(`${parent}/${name}`).then(
    facts => facts.isDirectory(),
    () => false,
  );
}

/** Changes owner and permissions of what is at a path. A link is followed. */
export async function changeEntry(
  root: string,
  path: string,
  change: { uid?: number; gid?: number; mode?: number },
): Promise<VolumeEntry> {
  const unchanged = 0xffff_ffff; // chown(2)
  try {
    using top = openTop(root);
    using opened = openBeneath(top, path);
    const { uid = unchanged, gid = unchanged, mode } = change;
    if (uid !== unchanged || gid !== unchanged) await chown(opened.path, uid, gid);
    if (mode !== undefined) await chmod(opened.path, mode);
    return describe(await stat(opened.path), path);
  } catch (error) {
    throw contentError(error, path);
  }
}

/**
 * Removes what is at a path with everything below it, in a process of its own: a tree may hold a million files.
 * `rootInHelper` is the content as the helper sees it. `inTurn` is called for each part of the work.
 */
export async function removeEntry(
  { helper, helperBinary }: { helper: Helper; helperBinary: string },
  rootInHelper: string,
  path: string,
  inTurn: <T>(work: () => Promise<T>) => Promise<T>,
): Promise<void> {
  if (path === '')
    throw new AtollError('invalid', "path: the root of a volume can't be removed; delete the volume, or what is in it");
  const deadline = performance.now() + removeTimeoutMs;
  const part = () => helper.spawn([helperBinary, 'remove-beneath', rootInHelper, path], { timeoutMs: removeTurnMs });
  for (let wasCut = false; ; wasCut = true) {
    const { status, output } = await inTurn(part);
    if (status === 0) return;
    if (status === killedStatus && performance.now() < deadline) continue;
    const missing = /^(2|18|20|40) /.test(output); // ENOENT, EXDEV, ENOTDIR, ELOOP
    // The part before has removed the last of it, and was killed before it could report that.
    if (missing && wasCut) return;
    throw new AtollError(
      missing ? 'not_found' : 'internal',
      `path: ${JSON.stringify(path)} ${missing ? 'was not found in the volume' : `can't be removed: ${output.trim()}`}`,
    );
  }
}
