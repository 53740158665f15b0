import { chmodSync, existsSync, lchownSync, lstatSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

/** What of the data directory is the api's. All else is root's, and the directory itself lets nobody else pass. */
export const apiFolders = ['api', 'files'] as const;

const ownerOnly = { directory: 0o700, file: 0o600 } as const;

/** The database of an installation without PostgreSQL; before its processes had users of their own it was in the directory itself. */
const sqliteFile = 'atoll.sqlite';
const sqliteSuffixes = ['', '-wal', '-shm'];

/** Where uploaded files of templates are. */
export const filesDirOf = (dataDir: string): string => join(dataDir, 'files');

/** Where the state is, without PostgreSQL. */
export function sqlitePathOf(dataDir: string): string {
  const [before, now] = [join(dataDir, sqliteFile), join(dataDir, 'api', sqliteFile)];
  return existsSync(before) && !existsSync(now) ? before : now;
}

/**
 * Gives the api's folders of a data directory to its user; a directory of an earlier version is brought up. To be called by root, while
 * no api works on it.
 */
export function prepareDataDirectory(dataDir: string, apiUser: number): void {
  for (const name of apiFolders) mkdirSync(join(dataDir, name), { recursive: true, mode: ownerOnly.directory });
  moveDatabase(dataDir);
  for (const name of apiFolders) own(join(dataDir, name), apiUser);
  chmodSync(dataDir, ownerOnly.directory);
}

/** Gives a tree to a user. Links are not followed. */
function own(path: string, uid: number): void {
  const facts = lstatSync(path);
  if (facts.uid !== uid || facts.gid !== uid) lchownSync(path, uid, uid);
  if (facts.isSymbolicLink()) return;
  const mode = facts.isDirectory() ? ownerOnly.directory : ownerOnly.file;
  if ((facts.mode & 0o7777) !== mode) chmodSync(path, mode);
  if (facts.isDirectory()) for (const entry of readdirSync(path)) own(join(path, entry), uid);
}

/** The main file last: a move that was cut off is gone on with. */
function moveDatabase(dataDir: string): void {
  if (sqlitePathOf(dataDir) !== join(dataDir, sqliteFile)) return;
  for (const suffix of sqliteSuffixes.toReversed()) {
    const from = join(dataDir, `${sqliteFile}${suffix}`);
    if (existsSync(from)) renameSync(from, join(dataDir, 'api', `${sqliteFile}${suffix}`));
  }
}
