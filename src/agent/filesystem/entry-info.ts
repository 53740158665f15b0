import type { BigIntStats } from 'node:fs';
import { lstat, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { Native } from '../native.ts';
import { readOwnerNames, type OwnerNames } from '../sandbox/users.ts';
import { errnoOf } from './errno.ts';
import { readMetadata } from './metadata.ts';

/** The wire's `EntryInfo`; members with their default value are absent, as in protobuf's JSON. */
export type EntryInfo = {
  name: string;
  /** Type of a link's target; absent for anything but files and directories. */
  type?: 'FILE_TYPE_FILE' | 'FILE_TYPE_DIRECTORY';
  path: string;
  size?: string;
  mode?: number;
  permissions: string;
  owner: string;
  group: string;
  modifiedTime: string;
  symlinkTarget?: string;
  /** The entry itself is a link; `type` is its target's. */
  isSymlink?: true;
  metadata?: Record<string, string>;
};

/**
 * Describes what is at `path`, without following a final link. `owners`: a cache of names for a whole list. `raw` is
 * the path in bytes, for names that are not UTF-8. Throws what lstat(2) throws.
 */
export async function readEntry(
  native: Native,
  path: string,
  owners: OwnerNames = readOwnerNames(),
  raw: string | Buffer = path,
): Promise<EntryInfo> {
  const facts = await lstat(raw, { bigint: true });
  const isLink = facts.isSymbolicLink();
  const target = isLink ? await stat(raw, { bigint: true }).catch(() => undefined) : facts;
  const type = typeOf(target);
  const mode = Number((target ?? facts).mode) & 0o777;
  const metadata = isLink ? undefined : readMetadata(native, raw);
  return {
    name: basename(path) || path,
    ...(type && { type }),
    path,
    ...(facts.size > 0n && { size: String(facts.size) }),
    ...(mode > 0 && { mode }),
    permissions: permissionsOf(Number(facts.mode)),
    owner: owners.user(Number(facts.uid)),
    group: owners.group(Number(facts.gid)),
    modifiedTime: timestampOf(facts.mtimeNs),
    ...(isLink && { symlinkTarget: await linkTarget(path, raw), isSymlink: true }),
    ...(metadata && { metadata }),
  };
}

/** An entry without the members that very old clients can't read. */
export function shortEntry({ name, type, path }: EntryInfo): Pick<EntryInfo, 'name' | 'type' | 'path'> {
  return { name, ...(type && { type }), path };
}

function typeOf(facts: BigIntStats | undefined): EntryInfo['type'] {
  if (facts?.isFile()) return 'FILE_TYPE_FILE';
  return facts?.isDirectory() ? 'FILE_TYPE_DIRECTORY' : undefined;
}

/** The final target of a link, or the link's text if it is dangling; empty where nobody may read it, as in /proc. */
async function linkTarget(path: string, raw: string | Buffer): Promise<string> {
  return realpath(raw)
    .catch(async () => resolve(dirname(path), await readlink(raw)))
    .catch((error: unknown) => (errnoOf(error) === 'ENOENT' ? Promise.reject(error as Error) : ''));
}

// S_IFMT and its values, and the bits above the permissions, with the letters that Go prints for them
// (fs.FileMode.String).
const kinds: [bits: number, letters: string][] = [
  [0o040000, 'd'],
  [0o120000, 'L'],
  [0o060000, 'D'],
  [0o020000, 'D'],
  [0o010000, 'p'],
  [0o140000, 'S'],
];

/** E.g. `-rw-r--r--`, `dtrwxrwxrwx`, `Lrwxrwxrwx`. */
function permissionsOf(mode: number): string {
  const kind = mode & 0o170000;
  let letters = kinds.find(([bits]) => bits === kind)?.[1] ?? '';
  if (mode & 0o4000) letters += 'u';
  if (mode & 0o2000) letters += 'g';
  if (kind === 0o020000) letters += 'c';
  if (mode & 0o1000) letters += 't';
  const bits = 'rwxrwxrwx'.split('').map((letter, index) => (mode & (0o400 >> index) ? letter : '-'));
  return (letters || '-') + bits.join('');
}

/** The years 1 and 9999 in seconds: protobuf has no others, but a file system may hold any time. */
const [firstSecond, lastSecond] = [-62_135_596_800n, 253_402_300_799n];

/** RFC 3339 with as many digits as needed, as in protobuf's JSON. */
function timestampOf(nanoseconds: bigint): string {
  const seconds = nanoseconds / 1_000_000_000n - (nanoseconds % 1_000_000_000n < 0n ? 1n : 0n);
  const fraction = String(nanoseconds - seconds * 1_000_000_000n)
    .padStart(9, '0')
    .replace(/(000){1,3}$/, '');
  if (seconds < firstSecond) return timestampOf(firstSecond * 1_000_000_000n);
  if (seconds > lastSecond) return timestampOf(lastSecond * 1_000_000_000n);
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, -5)}${fraction && `.${fraction}`}Z`;
}
