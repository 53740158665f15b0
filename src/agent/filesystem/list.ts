import { readdir, stat } from 'node:fs/promises';
import { AtollError } from '../../base/error.ts';
import type { Native } from '../native.ts';
import { readOwnerNames } from '../sandbox/users.ts';
import { readEntry, type EntryInfo, type EntryOptions } from './entry-info.ts';
import { errnoOf, fileError } from './errno.ts';

/** Entries of one answer. For more, ask for less depth, directory by directory. */
const entriesMax = 250_000;
/** Entries that are read at the same time. */
const batch = 64;

/**
 * The entries below `path`, `depth` levels down: depth first, siblings in byte order. A link at `path` itself is
 * followed; links below are listed and not entered. Entries that vanish meanwhile are left out.
 */
export async function listDirectory(
  native: Native,
  path: string,
  depth: number,
  options: EntryOptions,
): Promise<EntryInfo[]> {
  const facts = await stat(path).catch(error => Promise.reject(fileError(error, path)));
  if (!facts.isDirectory()) throw new AtollError('invalid', `path '${path}' is not a directory`);
  const found: EntryInfo[] = [];
  await walk(
    { native, found, options: { ...options, owners: readOwnerNames() } },
    path,
    Buffer.from(path),
    Math.max(depth, 1),
  );
  return found;
}

type Walk = { native: Native; found: EntryInfo[]; options: EntryOptions };

async function walk(context: Walk, path: string, raw: Buffer, depth: number): Promise<void> {
  const { native, found, options } = context;
  const names = await readdir(raw, { encoding: 'buffer' }).catch(error => Promise.reject(fileError(error, path)));
  names.sort(Buffer.compare);
  for (let at = 0; at < names.length; at += batch) {
    const children = names.slice(at, at + batch).map(name => {
      const child = Buffer.concat([raw, Buffer.from(endsWithSlash(path) ? '' : '/'), name]);
      const childPath = child.toString();
      const entry = readEntry(native, childPath, options, child).catch(ignoreVanished);
      entry.catch(() => {}); // one that fails ends the list before the others are waited for
      return { child, childPath, entry };
    });
    for (const { child, childPath, entry } of children) {
      const info = await entry;
      if (!info) continue;
      if (found.push(info) > entriesMax)
        throw new AtollError('too_large', `there are more than ${entriesMax} entries: list with less depth`);
      const isOwnDirectory = info.type === 'FILE_TYPE_DIRECTORY' && info.symlinkTarget === undefined;
      if (depth > 1 && isOwnDirectory) await walk(context, childPath, child, depth - 1).catch(ignoreVanished);
    }
  }
}

const endsWithSlash = (path: string) => path.endsWith('/');

function ignoreVanished(error: unknown): undefined {
  if (error instanceof AtollError ? error.code === 'not_found' : errnoOf(error) === 'ENOENT') return undefined;
  throw error;
}
