import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { StoreLocation } from '../database/db.ts';
import { inspectStore, nameOfDatabase } from '../database/inspect.ts';
import type { InstallationRecord } from '../database/installation.ts';
import { AtollError, systemCodeOf } from '../../base/error.ts';
import { deriveToken } from '../../base/crypto/secret.ts';
import { asksControl, sqlitePathOf } from './data-directory.ts';
import { readIfThere } from '../../base/small-file.ts';
import { type InstallationFacts, factsFile, readFacts } from './facts.ts';
import type { Place } from './place.ts';

/** The relation of directory and database: made for each other, both new, or to be recorded as belonging together. */
export type Pair =
  | { kind: 'new' }
  | { kind: 'known'; facts: InstallationFacts }
  /** Goes on with the state in the database. `accepted`: it may lack what the directory keeps. */
  | {
      kind: 'to record';
      installation: InstallationRecord | null;
      facts: InstallationFacts | undefined;
      accepted: boolean;
    };

/** A digest that identifies a seed without revealing it. */
export const seedDigestOf = (seed: Uint8Array): string => deriveToken(seed, 'installation');

/** How an installation's facts name its database: kind and name, never credentials. */
export function databaseOf(location: StoreLocation): InstallationFacts['database'] {
  return location.kind === 'sqlite' ? 'sqlite' : `postgres ${nameOfDatabase(location.url)}`;
}

/**
 * Checks whether data directory, seed and database belong together, and changes nothing. `accept`: the operator goes on
 * with a database that is empty or older; `alone`: the state is for a single machine. Errors: `precondition`, with a
 * remedy, where they don't belong together; `internal` for damage; `unavailable` for a database that can't be reached.
 */
export async function checkPair(
  place: Place,
  { accept, alone = false }: { accept: boolean; alone?: boolean },
): Promise<Pair> {
  const { dataDir, database: location } = place;
  const facts = readFacts(dataDir);
  if (facts) refuseOtherKind(place, facts);
  const contents = await inspectStore(location);
  if (alone && contents.kind === 'state' && contents.isCluster)
    throw refusal(
      `${nameOf(location)} is that of a cluster, whose machines a machine alone does not know. \`atoll control\` ` +
        'starts a control process of it; for a machine alone, set ATOLL_DATABASE_URL to another database.',
    );
  if (!facts) return checkUnrecorded(place, contents.kind === 'empty' ? undefined : contents);
  requireIdentity(dataDir, facts);
  const where = nameOf(location);
  const installation = contents.kind === 'empty' ? undefined : contents.installation;
  if (
    installation &&
    (installation.installationId !== facts.installationId || installation.seedDigest !== facts.seedDigest)
  ) {
    throw refusal(
      `${where} holds the state of another installation (${installation.installationId}), and ${dataDir} belongs ` +
        `to ${facts.installationId}. ${whichToSet(location)}`,
    );
  }
  if (installation && installation.generation >= facts.generation && installation.generation <= facts.generation + 1)
    return { kind: 'known', facts };
  if (accept) return { kind: 'to record', installation: installation ?? null, facts, accepted: true };
  if (installation && installation.generation > facts.generation) {
    throw refusal(
      `${dataDir} is an older copy than ${where}, which has gone on since: what the state names is not here. Use ` +
        `the newer directory, or restore both from one backup with \`atoll restore\`. ${acceptHint}`,
    );
  }
  const found =
    installation === undefined
      ? location.kind === 'sqlite' && !existsSync(location.path)
        ? 'is missing'
        : 'is empty'
      : 'holds an older state than this directory has seen';
  throw refusal(
    `${where} ${found}, and ${dataDir} keeps sandboxes, volumes or templates that it does not know. Put the right ` +
      `database back, or restore a backup into a new directory with \`atoll restore\`. ${acceptHint}`,
  );
}

/** The same for commands that work beside a platform, except that the directory must be an installation's. */
export async function requirePair(place: Place): Promise<void> {
  const { dataDir } = place;
  if (!existsSync(join(dataDir, 'seed')) && readFacts(dataDir) === undefined) {
    throw new AtollError(
      'not_found',
      asksControl(dataDir) ??
        `There is no installation in ${dataDir}. Set ATOLL_DATA_DIR to the directory of the one you mean, or start ` +
          `it once with \`atoll up\`.`,
    );
  }
  await checkPair(place, { accept: false });
}

/** Whether control processes share this state. Errors: those of a database that can't be used. */
export async function isOfCluster(location: StoreLocation): Promise<boolean> {
  const contents = await inspectStore(location);
  return contents.kind === 'state' && contents.isCluster;
}

const acceptHint =
  'To go on without: `atoll up --accept-database`; then sandboxes that it does not know are set aside, not deleted.';

function refuseOtherKind({ dataDir, database: location }: Place, facts: InstallationFacts): void {
  if (facts.database === 'sqlite' && location.kind === 'postgres') {
    throw refusal(
      `${dataDir} has its state in ${sqlitePathOf(dataDir)}, and ATOLL_DATABASE_URL names PostgreSQL. Unset it; ` +
        'to move to PostgreSQL, make a backup and restore it there (docs/backup.md).',
    );
  }
  if (facts.database !== 'sqlite' && location.kind === 'sqlite') {
    throw refusal(
      `${dataDir} has its state in PostgreSQL at ${facts.database.replace(/^postgres /, '')}, and ` +
        `ATOLL_DATABASE_URL is not set. Set it, best in ${join(dataDir, 'settings')}.`,
    );
  }
}

function requireIdentity(dataDir: string, facts: InstallationFacts): void {
  const seed = readIfThere(join(dataDir, 'seed'));
  if (seed === undefined)
    throw refusal(
      `${join(dataDir, 'seed')} is missing: without it no stored secret can be opened and every sandbox's token ` +
        'changes. Put it back from a backup.',
    );
  if (seedDigestOf(Buffer.from(seed, 'hex')) !== facts.seedDigest)
    throw refusal(
      `${join(dataDir, 'seed')} is not the seed of this installation (${facts.installationId}). Put that one back ` +
        'from a backup.',
    );
  const nodeId = readIfThere(join(dataDir, 'node-id'));
  if (nodeId !== facts.nodeId)
    throw refusal(
      `${join(dataDir, 'node-id')} ${nodeId === undefined ? 'is missing' : 'is that of another installation'}. ` +
        `Write ${facts.nodeId} into it: ${factsFile(dataDir)} says so.`,
    );
}

/**
 * For a directory without facts: it is new, its first start was cut off, or they were lost. If directory and database
 * agree, both are recorded.
 */
function checkUnrecorded(
  { dataDir, database: location }: Place,
  state: { installation: InstallationRecord | null } | undefined,
): Pair {
  const [seed, nodeId, apiKey] = ['seed', 'node-id', 'api-key'].map(name => readIfThere(join(dataDir, name)));
  const keeps = keepsSomething(dataDir);
  const where = nameOf(location);
  if (!state) {
    // A first start that was cut off leaves no installation yet.
    if (!keeps && apiKey === undefined) return { kind: 'new' };
    const found = location.kind === 'sqlite' && !existsSync(location.path) ? 'is missing' : 'is empty';
    throw refusal(
      `${where} ${found}, and ${dataDir} holds an installation. Set ATOLL_DATABASE_URL if its state is in ` +
        `PostgreSQL, put its database back, or restore a backup into a new directory with \`atoll restore\`.`,
    );
  }
  if (seed === undefined || nodeId === undefined) {
    const lacks = seed === undefined ? 'seed' : 'node-id';
    throw refusal(
      `${where} holds the state of an installation, and ${dataDir} has no file \`${lacks}\`. Set ATOLL_DATA_DIR ` +
        'to the directory that belongs to it, or put the file back from a backup.',
    );
  }
  // A state without an installation comes from a first start that was cut off, and then so does the directory.
  const belongs = state.installation
    ? state.installation.seedDigest === seedDigestOf(Buffer.from(seed, 'hex'))
    : !keeps && apiKey === undefined;
  if (!belongs)
    throw refusal(`${where} holds the state of another installation than ${dataDir}. ${whichToSet(location)}`);
  return { kind: 'to record', installation: state.installation, facts: undefined, accepted: false };
}

/** Says whether there are sandboxes, running or paused, or volumes. */
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
  return location.kind === 'sqlite'
    ? `The database ${location.path}`
    : `The PostgreSQL database at ${nameOfDatabase(location.url)}`;
}

function whichToSet(location: StoreLocation): string {
  return location.kind === 'sqlite'
    ? 'Set ATOLL_DATA_DIR to the directory that you mean, or put its own database back.'
    : 'Set ATOLL_DATA_DIR or ATOLL_DATABASE_URL so that both are of one installation.';
}

const refusal = (message: string): AtollError => new AtollError('precondition', `${message} Nothing was changed.`);
