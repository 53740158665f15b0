import { Database } from 'bun:sqlite';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import pg from 'pg';
import { AtollError, messageOf, systemCodeOf } from '../../base/error.ts';
import { connectStore } from './database.ts';
import type { Db, StoreLocation } from './db.ts';
import { findInstallation } from './installation.ts';
import type { InstallationRecord } from './installation.ts';
import { refuseUnknown, schemaVersion } from './migrate.ts';
import { hostsOf } from './postgres/hosts.ts';
import { connectToPrimary } from './postgres/primary.ts';
import { failureOf } from './sqlite/connect.ts';

/** What a database holds, found out without changing it. */
type StoreContents =
  | { kind: 'empty' }
  /**
   * `installation` is null where the first start was cut off before it named itself. `isCluster`: control runs on it.
   */
  | { kind: 'state'; installation: InstallationRecord | null; isCluster: boolean };

/** The migration that adds the tables of a cluster. */
const clusterSchema = '0004-cluster';

const sqliteMagic = 'SQLite format 3\0';

/**
 * Checks whether a database can be used, and whose it is. Throws `internal` for a damaged one, `unavailable` for one
 * out of reach, `no_space`, `precondition` for one of a version that this one does not take over.
 */
export async function inspectStore(location: StoreLocation): Promise<StoreContents> {
  if (location.kind === 'postgres') await requireServer(location.url);
  else {
    requireFiles(location.path);
    if (!isThere(location.path)) return { kind: 'empty' };
    requireWhole(location.path);
  }
  await using store = connectStore(location);
  await refuseUnknown(store.db);
  const schema = await schemaVersion(store.db);
  if (schema === null) return { kind: 'empty' };
  const isCluster = schema >= clusterSchema && (await hasAuthority(store.db));
  return { kind: 'state', installation: await findInstallation(store.db), isCluster };
}

/** Only the first start of control makes an authority. */
async function hasAuthority(db: Db): Promise<boolean> {
  return (await db.selectFrom('cluster_authority').select('place').executeTakeFirst()) !== undefined;
}

/** The files that SQLite opens, by their suffixes to the database's name. */
const sqliteSuffixes = ['', '-journal', '-wal', '-shm'];

/**
 * The files are in a folder of the api, which may have been taken over, and the process that checks them watches all
 * parts: opening a pipe would make it wait for a writer.
 */
function requireFiles(path: string): void {
  for (const name of sqliteSuffixes.map(suffix => `${path}${suffix}`)) {
    const found = statSync(name, { throwIfNoEntry: false });
    if (found && !found.isFile()) throw damaged(name, 'it is no file');
  }
}

/** False for a missing file, and for an empty one, as a file system leaves a lost one. */
function isThere(path: string): boolean {
  try {
    const head = Buffer.alloc(sqliteMagic.length);
    const file = openSync(path, 'r');
    try {
      const length = readSync(file, head);
      if (length === 0) return false;
      if (head.toString('latin1', 0, length) !== sqliteMagic) throw damaged(path, 'it is no SQLite database');
      return true;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Reads every page: a few milliseconds for each 10 MB. */
function requireWhole(path: string): void {
  let found: string;
  try {
    using database = new Database(path, { readwrite: true, strict: true });
    found = database.query<{ quick_check: string }, []>('pragma quick_check(1)').get()?.quick_check ?? 'nothing';
  } catch (error) {
    // A file that is locked or can't be read at all is not damaged.
    if (/^SQLITE_(CORRUPT|NOTADB)/.test(systemCodeOf(error))) throw damaged(path, messageOf(error));
    const failure = failureOf(error, ` at ${path}`);
    if (!(failure instanceof AtollError) || failure.code !== 'no_space') throw failure;
    throw new AtollError('no_space', `The disk of ${path} is full: make room on it. Nothing was changed.`, {
      cause: error,
    });
  }
  if (found !== 'ok') throw damaged(path, found);
}

function damaged(path: string, what: string): AtollError {
  const summary = what.split('\n').slice(0, 2).join(' ').slice(0, 200);
  return new AtollError(
    'internal',
    `The database ${path} is damaged (${summary}). Nothing was changed. Move it away and put a whole copy in its ` +
      `place, or make a new data directory of a backup with \`atoll restore FILE\`.`,
  );
}

async function requireServer(url: string): Promise<void> {
  try {
    await using _ = await connectToPrimary(url, { application_name: 'atoll' });
  } catch (error) {
    const reason = messageOf(error) || systemCodeOf(error) || 'no answer';
    throw new AtollError(
      'unavailable',
      `PostgreSQL at ${nameOfDatabase(url)} can't be used: ${reason}. Start it, or correct ATOLL_DATABASE_URL.`,
      { cause: error },
    );
  }
}

/** A database's place, without its password. Throws `invalid` for anything but the URL of one. */
export function nameOfDatabase(url: string): string {
  const clients = hostsOf(url).map(clientOf);
  return `${clients.map(({ host, port }) => `${host}:${port}`).join(',')}/${clients[0]?.database ?? ''}`;
}

function clientOf(url: string): pg.Client {
  try {
    return new pg.Client({ connectionString: url });
  } catch {
    throw new AtollError('invalid', 'ATOLL_DATABASE_URL is no URL of a PostgreSQL database.');
  }
}
