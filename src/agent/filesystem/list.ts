import { readdir, stat } from 'node:fs/promises';
import { AtollError } from '../../base/error.ts';
import type { Native } from '../native.ts';
import { readOwnerNames, type OwnerNames } from '../sandbox/users.ts';
import { readEntry, type EntryInfo } from './entry-info.ts';
import { errnoOf, fileError } from './errno.ts';

/** Entries per answer. To get more, ask for less depth, directory by directory. */
const entriesMax = 250_000;
/** Entries read at the same time. */
const batch = 64;

/**
 * The entries below `path`, `depth` levels down: depth first, siblings in byte order. A link at `path` itself is
 * followed; links below it are listed but not entered. Left out are entries that vanish meanwhile or that the kernel
 * lets nobody examine, and everything below a directory that can't be read.
 */
export async function listDirectory(native: Native, path: string, depth: number): Promise<EntryInfo[]> {
  const facts = await stat(path).catch(error => Promise.reject(fileError(error, path)));
  if (!facts.isDirectory()) throw new AtollError('invalid', `path '${path}' is not a directory`);
  const found: EntryInfo[] = [];
  await walk({ native, found, owners: readOwnerNames() }, Buffer.from(path), Math.max(depth, 1)).catch(error =>
    Promise.reject(fileError(error, path)),
  );
  return found;
}

type Walk = { native: Native; found: EntryInfo[]; owners: OwnerNames };

async function walk(context: Walk, path: Buffer, depth: number): Promise<void> {
  const { native, found, owners } = context;
  const names = await readdir(path, { encoding: 'buffer' });
  names.sort(Buffer.compare);
  const prefix = path.at(-1) === slash ? path : Buffer.concat([path, Buffer.of(slash)]);
  for (let at = 0; at < names.length; at += batch) {
    const children = names.slice(at, at + batch).map(name => {
      const child = Buffer.concat([prefix, name]);
      const entry = readEntry(native, child.toString(), owners, child).catch(ignoreUnreadable);
      entry.catch(() => {}); // a failure ends the list before the other entries are awaited
      return { child, entry };
    });
    for (const { child, entry } of children) {
      const info = await entry;
      if (!info) continue;
      if (found.push(info) > entriesMax)
        throw new AtollError('too_large', `there are more than ${entriesMax} entries: list with less depth`);
      const isOwnDirectory = info.type === 'FILE_TYPE_DIRECTORY' && !info.isSymlink;
      if (depth > 1 && isOwnDirectory) await walk(context, child, depth - 1).catch(ignoreUnreadable);
    }
  }
}

const slash = 0x2f;

/**
 * Errors that concern only one entry: it is gone or was replaced, its process has ended (proc, which then also answers
 * EINVAL), nobody may examine it, or the disk or server behind it fails.
 */
const ofOneEntry = ['ENOENT', 'ENOTDIR', 'ESRCH', 'EINVAL', 'EACCES', 'EPERM', 'EIO', 'ENOTCONN', 'ESTALE'];

function ignoreUnreadable(error: unknown): undefined {
  if (!ofOneEntry.includes(errnoOf(error) ?? '')) throw error;
}
