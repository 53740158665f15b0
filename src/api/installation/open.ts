import type { StoreLocation } from '../database/db.ts';
import { openStore, type Store } from '../database/database.ts';
import { advanceGeneration, findInstallation, putInstallation } from '../database/installation.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { databaseOf, type Pair, seedDigestOf } from './check.ts';
import type { InstallationFacts } from './facts.ts';

/** Interval at which both are marked anew, milliseconds: a database that goes back by less goes unnoticed. */
const advanceIntervalMs = 60_000;

/** Puts the facts in place in the data directory, where only root can write. */
type FactsWriter = (facts: InstallationFacts) => Promise<void>;

/**
 * Opens the state of the installation that `checkPair` found, and marks directory and database as belonging together.
 */
export async function openPair(
  location: StoreLocation,
  { nodeId, seed }: { nodeId: string; seed: Uint8Array },
  pair: Pair,
  write: FactsWriter,
): Promise<{ store: Store; facts: InstallationFacts }> {
  const store = await openStore(location);
  try {
    const known = pair.kind === 'new' ? undefined : pair.facts;
    const installationId =
      known?.installationId ?? (pair.kind === 'to record' ? pair.installation?.installationId : undefined) ?? newUuid();
    const seedDigest = seedDigestOf(seed);
    if (pair.kind !== 'known') {
      const found = pair.kind === 'to record' ? pair.installation : null;
      const generation = Math.max(known?.generation ?? 0, found?.generation ?? 0);
      const accepted = pair.kind === 'to record' && pair.accepted;
      await store.db
        .transaction()
        .execute(db =>
          putInstallation(db, {
            installationId,
            seedDigest,
            generation,
            acceptedAtUs: accepted ? Date.now() * 1000 : (found?.acceptedAtUs ?? null),
          }),
        );
    }
    const facts: InstallationFacts = {
      installationId,
      nodeId,
      seedDigest,
      database: databaseOf(location),
      generation: 0,
    };
    return { store, facts: await markAnew(write, store, facts) };
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Marks both anew from time to time, until it is disposed of. Calls `onExchanged` when the database has become another
 * one, or an older copy: what it lacks may exist all the same.
 */
export function keepPair(
  write: FactsWriter,
  { store, facts }: { store: Store; facts: InstallationFacts },
  log: Log,
  onExchanged: (error: Error) => void,
): AsyncDisposable {
  let current = facts;
  let advancing = Promise.resolve();
  const advance = async () => {
    try {
      current = await markAnew(write, store, current);
    } catch (error) {
      if (error instanceof AtollError && error.code === 'precondition') onExchanged(error);
      else log.warn('directory and database could not be marked and will be again', { error: messageOf(error) });
    }
  };
  const timer = setInterval(() => {
    advancing = advancing.then(advance);
  }, advanceIntervalMs);
  timer.unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await advancing;
    },
  };
}

/**
 * Writes to the directory before the database advances, and again afterwards. Whichever step a crash, a full disk or a
 * lost answer prevents, the database is at most one ahead, and never behind.
 */
async function markAnew(write: FactsWriter, store: Store, facts: InstallationFacts): Promise<InstallationFacts> {
  const found = await findInstallation(store.db);
  if (found?.installationId !== facts.installationId || found.generation < facts.generation) {
    throw new AtollError(
      'precondition',
      'The database was exchanged for another or an older one while the platform ran. The platform ends; its next ' +
        'start says what to do.',
    );
  }
  if (found.generation !== facts.generation) await write({ ...facts, generation: found.generation });
  const next = { ...facts, generation: await advanceGeneration(store, facts.installationId) };
  await write(next);
  return next;
}
