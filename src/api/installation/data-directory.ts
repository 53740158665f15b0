import { chmodSync, existsSync, lchownSync, lstatSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

/** The api's folders of the data directory. All others are root's, and only root can enter the directory itself. */
export const apiFolders = ['api', 'files'] as const;

const ownerOnly = { directory: 0o700, file: 0o600 } as const;

/** The SQLite database. Earlier versions kept it in the data directory itself. */
const sqliteFile = 'atoll.sqlite';
const sqliteSuffixes = ['', '-wal', '-shm'];

/** The file with the API key of the first start. */
export const apiKeyFile = (dataDir: string): string => join(dataDir, 'api-key');

/** The file with which a machine of a cluster proves itself. */
export const machineIdentityFile = (dataDir: string): string => join(dataDir, 'cluster-identity');

/** Where to ask for what a machine of a cluster can't answer; undefined for any other directory. */
export function asksControl(dataDir: string): string | undefined {
  if (!existsSync(machineIdentityFile(dataDir))) return undefined;
  return (
    `${dataDir} is the data directory of a machine of a cluster, which has no state: run this where a control ` +
    'process is.'
  );
}

/** Folder of the uploaded files of templates. */
export const filesDirOf = (dataDir: string): string => join(dataDir, 'files');

/** Path of the SQLite database. */
export function sqlitePathOf(dataDir: string): string {
  const [before, now] = [join(dataDir, sqliteFile), join(dataDir, 'api', sqliteFile)];
  return existsSync(before) && !existsSync(now) ? before : now;
}

/**
 * Gives the api's folders of a data directory to its user, and brings a directory of an earlier version up to date.
 * Root calls it while no api uses the directory.
 */
export function prepareDataDirectory(dataDir: string, apiUser: number): void {
  for (const name of apiFolders) mkdirSync(join(dataDir, name), { recursive: true, mode: ownerOnly.directory });
  moveDatabase(dataDir);
  for (const name of apiFolders) own(join(dataDir, name), apiUser);
  chmodSync(dataDir, ownerOnly.directory);
}

/** Gives a tree to a user. Does not follow links. */
function own(path: string, uid: number): void {
  const facts = lstatSync(path);
  if (facts.uid !== uid || facts.gid !== uid) lchownSync(path, uid, uid);
  if (facts.isSymbolicLink()) return;
  const mode = facts.isDirectory() ? ownerOnly.directory : ownerOnly.file;
  if ((facts.mode & 0o7777) !== mode) chmodSync(path, mode);
  if (facts.isDirectory()) for (const entry of readdirSync(path)) own(join(path, entry), uid);
}

/** The main file goes last, so that an interrupted move is continued. */
function moveDatabase(dataDir: string): void {
  if (sqlitePathOf(dataDir) !== join(dataDir, sqliteFile)) return;
  for (const suffix of sqliteSuffixes.toReversed()) {
    const from = join(dataDir, `${sqliteFile}${suffix}`);
    if (existsSync(from)) renameSync(from, join(dataDir, 'api', `${sqliteFile}${suffix}`));
  }
}
