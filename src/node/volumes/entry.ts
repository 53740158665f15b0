import type { Stats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import type { VolumeEntry, VolumeEntryType } from '../../protocol/volume.ts';
import type { Opened } from './beneath.ts';

const permissionBits = 0o7777;

/** Describes an entry of an opened directory; `path` becomes its path in the answer. Links are not followed. */
export async function entryIn(directory: Opened, name: string, path: string): Promise<VolumeEntry> {
  const place = name === '' ? directory.path : `${directory.path}/${name}`;
  // The path of a descriptor is itself a link.
  const facts = await lstat(name === '' ? `${place}/.` : place);
  const target = facts.isSymbolicLink() ? await readlink(place) : undefined;
  return { ...describe(facts, path), ...(target !== undefined && { target }) };
}

/** An entry, from the kernel's facts about it. */
export function describe(facts: Stats, path: string): VolumeEntry {
  return {
    name: path === '' ? '/' : path.slice(path.lastIndexOf('/') + 1),
    type: typeOf(facts),
    path: `/${path}`,
    sizeBytes: facts.size,
    mode: facts.mode & permissionBits,
    uid: facts.uid,
    gid: facts.gid,
    accessedAtMs: facts.atimeMs,
    modifiedAtMs: facts.mtimeMs,
    changedAtMs: facts.ctimeMs,
  };
}

function typeOf(facts: Stats): VolumeEntryType {
  if (facts.isFile()) return 'file';
  if (facts.isDirectory()) return 'directory';
  return facts.isSymbolicLink() ? 'symlink' : 'unknown';
}
