import { constants } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { AtollError, systemCodeOf } from '../../base/error.ts';
import type { VolumeEntry } from '../../protocol/volume.ts';
import { openBeneath, openTop, type Opened } from './beneath.ts';
import { contentError } from './content-error.ts';
import { entryIn } from './entry.ts';

/** Most entries of one answer. */
const entriesMax = 10_000;
/** The kernel's size of a directory: one with 10,000 names of the greatest length has a third of this. */
const directoryBytesMax = 8 << 20;
/** Paths and targets of links in one answer: in JSON a byte may take six, and answers may have 64 MiB. */
const textBytesMax = 8 << 20;

type Listing = { entries: VolumeEntry[]; path: string; textBytes: number };

/**
 * The entries below a directory, down to `depth` levels, each directory followed by its children in the order of their
 * names.
 */
export async function listDirectory(root: string, path: string, depth: number): Promise<VolumeEntry[]> {
  const listing: Listing = { entries: [], path, textBytes: 0 };
  try {
    using top = openTop(root);
    using directory = openBeneath(top, path);
    if (!(await stat(directory.path)).isDirectory())
      throw new AtollError('invalid', `path: ${JSON.stringify(path)} is no directory`);
    await addChildren(listing, directory, path, depth);
  } catch (error) {
    throw contentError(error, path);
  }
  return listing.entries;
}

async function addChildren(listing: Listing, directory: Opened, path: string, depth: number): Promise<void> {
  if ((await stat(directory.path)).size > directoryBytesMax) throw tooMany(listing);
  const names = await readdir(`${directory.path}/.`);
  if (listing.entries.length + names.length > entriesMax) throw tooMany(listing);
  for (const name of names.toSorted(byCodePoints)) {
    if (listing.entries.length === entriesMax) throw tooMany(listing);
    const childPath = path === '' ? name : `${path}/${name}`;
    // What sandboxes remove meanwhile is no longer there; a name that is not UTF-8 can't be given here.
    const entry = await entryIn(directory, name, childPath).catch(unlessGone);
    if (!entry) continue;
    listing.entries.push(entry);
    listing.textBytes += Buffer.byteLength(entry.path) + Buffer.byteLength(entry.target ?? '');
    if (listing.textBytes > textBytesMax) throw tooMany(listing);
    if (entry.type !== 'directory' || depth <= 1) continue;
    using child = openedUnlessGone(directory, name);
    if (child) await addChildren(listing, child, childPath, depth - 1);
  }
}

function openedUnlessGone(directory: Opened, name: string): Opened | undefined {
  try {
    return openBeneath(directory, name, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    return unlessGone(error);
  }
}

function unlessGone(error: unknown): undefined {
  if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(systemCodeOf(error))) return undefined;
  throw error;
}

const byCodePoints = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function tooMany({ path }: Listing): AtollError {
  return new AtollError(
    'invalid',
    `path: ${JSON.stringify(path)} holds more than ${entriesMax} entries, or ${textBytesMax >> 20} MiB of names: ` +
      'list a directory below it, or fewer levels',
  );
}
