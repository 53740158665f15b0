import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { digestOf } from '../../api/app/credential.ts';
import { findApiKey } from '../../api/store/api-key.ts';
import { connectStore, type StoreLocation } from '../../api/store/database.ts';
import { inspectStore, nameOfDatabase } from '../../api/store/inspect.ts';
import type { InstallationRecord } from '../../api/store/installation.ts';
import { AtollError, systemCodeOf } from '../../base/error.ts';
import { deriveToken } from '../../base/secret.ts';
import { storeLocation } from '../accounts.ts';
import { sqlitePathOf } from '../data-directory.ts';
import { readIfThere } from '../identity.ts';
import type { Settings } from '../settings.ts';
import { type InstallationNote, noteFile, readNote } from './note.ts';

/** How directory and database were found: made for each other, both new, or both of a version that did not note it. */
export type Pair =
  | { kind: 'new' }
  | { kind: 'known'; note: InstallationNote }
  /** Goes on with what the database has. `accepted`: it may lack what the directory keeps. */
  | { kind: 'to note'; installation: InstallationRecord | null; note: InstallationNote | undefined; accepted: boolean };

export const seedDigestOf = (seed: Uint8Array): string => deriveToken(seed, 'installation');

export function databaseOf(location: StoreLocation): InstallationNote['database'] {
  return location.kind === 'sqlite' ? 'sqlite' : `postgres ${nameOfDatabase(location.url)}`;
}

/**
 * Looks whether data directory, seed and database belong together, and changes nothing. `accept`: the operator wants to go on
 * with a database that is empty or older. Throws `precondition` where they do not, with what to do; `internal` for what is
 * damaged; `unavailable` for a database that can't be reached.
 */
export async function checkPair(settings: Settings, { accept }: { accept: boolean }): Promise<Pair> {
  const { dataDir } = settings;
  const location = storeLocation(settings);
  const note = readNote(dataDir);
  if (note) refuseOtherKind(settings, note, location);
  const contents = await inspectStore(location);
  if (!note) return checkUnnoted(settings, location, contents.kind === 'empty' ? undefined : contents);
  requireIdentity(dataDir, note);
  const where = nameOf(location);
  const installation = contents.kind === 'empty' ? undefined : contents.installation;
  if (installation && (installation.installationId !== note.installationId || installation.seedDigest !== note.seedDigest)) {
    throw refusal(`${where} holds the state of another installation (${installation.installationId}), and ${dataDir} belongs to ${note.installationId}. ${whichToSet(location)}`);
  }
  if (installation && installation.generation >= note.generation && installation.generation <= note.generation + 1) return { kind: 'known', note };
  if (accept) return { kind: 'to note', installation: installation ?? null, note, accepted: true };
  if (installation && installation.generation > note.generation) {
    throw refusal(`${dataDir} is an older copy than ${where}, which has gone on since: what the state names is not here. Use the newer directory, or restore both from one backup with \`atoll restore\`. ${acceptHint}`);
  }
  const found = installation === undefined ? (location.kind === 'sqlite' && !existsSync(location.path) ? 'is missing' : 'is empty') : 'holds an older state than this directory has seen';
  throw refusal(`${where} ${found}, and ${dataDir} keeps sandboxes, volumes or templates that it does not know. Put the right database back, or restore a backup into a new directory with \`atoll restore\`. ${acceptHint}`);
}

/** For the commands that work beside a platform: the same, except that a directory has to be an installation's. */
export async function requirePair(settings: Settings): Promise<void> {
  const { dataDir } = settings;
  if (!existsSync(join(dataDir, 'seed')) && readNote(dataDir) === undefined) {
    throw new AtollError('not_found', `There is no installation in ${dataDir}. Set ATOLL_DATA_DIR to the directory of the one you mean, or start it once with \`atoll up\`.`);
  }
  await checkPair(settings, { accept: false });
}

const acceptHint = 'To go on without: `atoll up --accept-database`; then sandboxes that it does not know are set aside, not deleted.';

function refuseOtherKind({ dataDir }: Settings, note: InstallationNote, location: StoreLocation): void {
  if (note.database === 'sqlite' && location.kind === 'postgres') {
    throw refusal(`${dataDir} has its state in ${sqlitePathOf(dataDir)}, and ATOLL_DATABASE_URL names PostgreSQL. Unset it; to move to PostgreSQL, make a backup and restore it there (docs/backup.md).`);
  }
  if (note.database !== 'sqlite' && location.kind === 'sqlite') {
    throw refusal(`${dataDir} has its state in PostgreSQL at ${note.database.replace(/^postgres /, '')}, and ATOLL_DATABASE_URL is not set. Set it, best in ${join(dataDir, 'settings')}.`);
  }
}

function requireIdentity(dataDir: string, note: InstallationNote): void {
  const seed = readIfThere(join(dataDir, 'seed'));
  if (seed === undefined) throw refusal(`${join(dataDir, 'seed')} is missing: without it no stored secret can be opened and every sandbox's token changes. Put it back from a backup.`);
  if (seedDigestOf(Buffer.from(seed, 'hex')) !== note.seedDigest) throw refusal(`${join(dataDir, 'seed')} is not the seed of this installation (${note.installationId}). Put that one back from a backup.`);
  const nodeId = readIfThere(join(dataDir, 'node-id'));
  if (nodeId !== note.nodeId) throw refusal(`${join(dataDir, 'node-id')} ${nodeId === undefined ? 'is missing' : 'is that of another installation'}. Write ${note.nodeId} into it: ${noteFile(dataDir)} says so.`);
}

/** A directory of before there were notes, or a new one. Once they agree, both are noted. */
async function checkUnnoted(settings: Settings, location: StoreLocation, state: { installation: InstallationRecord | null } | undefined): Promise<Pair> {
  const { dataDir } = settings;
  const [seed, nodeId, apiKey] = ['seed', 'node-id', 'api-key'].map(name => readIfThere(join(dataDir, name)));
  const keeps = keepsSomething(dataDir);
  const where = nameOf(location);
  if (!state) {
    // What a first start that was cut off has left is no installation yet.
    if (!keeps && apiKey === undefined) return { kind: 'new' };
    const found = location.kind === 'sqlite' && !existsSync(location.path) ? 'is missing' : 'is empty';
    throw refusal(`${where} ${found}, and ${dataDir} holds an installation. Set ATOLL_DATABASE_URL if its state is in PostgreSQL, put its database back, or restore a backup into a new directory with \`atoll restore\`.`);
  }
  if (seed === undefined || nodeId === undefined) {
    const lacks = seed === undefined ? 'seed' : 'node-id';
    throw refusal(`${where} holds the state of an installation, and ${dataDir} has no file \`${lacks}\`. Set ATOLL_DATA_DIR to the directory that belongs to it, or put the file back from a backup.`);
  }
  const belongs = state.installation ? state.installation.seedDigest === seedDigestOf(Buffer.from(seed, 'hex')) : await agree(location, { nodeId, apiKey, keeps });
  if (!belongs) throw refusal(`${where} holds the state of another installation than ${dataDir}. ${whichToSet(location)}`);
  return { kind: 'to note', installation: state.installation, note: undefined, accepted: false };
}

/** Before IDs: the state knows the directory's own key or its sandboxes, or has no key yet because the first start was cut off. */
async function agree(location: StoreLocation, known: { nodeId: string; apiKey: string | undefined; keeps: boolean }): Promise<boolean> {
  await using store = connectStore(location);
  const { db } = store;
  const digest = known.apiKey === undefined ? null : digestOf('apiKey', known.apiKey);
  if (digest !== null && (await findApiKey(db, digest))) return true;
  if (await db.selectFrom('sandboxes').select('sandbox_id').where('node_id', '=', known.nodeId).limit(1).executeTakeFirst()) return true;
  if (known.keeps) return false;
  return location.kind === 'sqlite' || !(await db.selectFrom('api_keys').select('key_id').limit(1).executeTakeFirst());
}

/** Whether there are sandboxes, running or paused, or volumes. */
function keepsSomething(dataDir: string): boolean {
  return ['sandboxes', 'volumes'].some(name => entriesOf(join(dataDir, 'node', name)).length > 0);
}

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

function nameOf(location: StoreLocation): string {
  return location.kind === 'sqlite' ? `The database ${location.path}` : `The PostgreSQL database at ${nameOfDatabase(location.url)}`;
}

function whichToSet(location: StoreLocation): string {
  return location.kind === 'sqlite' ? 'Set ATOLL_DATA_DIR to the directory that you mean, or put its own database back.' : 'Set ATOLL_DATA_DIR or ATOLL_DATABASE_URL so that both are of one installation.';
}

const refusal = (message: string): AtollError => new AtollError('precondition', `${message} Nothing was changed.`);

