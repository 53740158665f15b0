import type { StoreLocation } from '../database/db.ts';
import { openStore, type Store } from '../database/database.ts';
import { advanceGeneration, findInstallation, putInstallation } from '../database/installation.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { databaseOf, type Pair, seedDigestOf } from './check.ts';
import type { InstallationNote } from './note.ts';

/** Interval at which both are marked anew: a database that goes back by less is not noticed. Milliseconds. */
const advanceIntervalMs = 60_000;

/** Puts a note in its place in the data directory, where only root can write. */
type NoteWriter = (note: InstallationNote) => Promise<void>;

/**
 * Opens the state of the installation that `checkPair` found, and marks directory and database as belonging together.
 */
export async function openPair(
  location: StoreLocation,
  { nodeId, seed }: { nodeId: string; seed: Uint8Array },
  pair: Pair,
  write: NoteWriter,
): Promise<{ store: Store; note: InstallationNote }> {
  const store = await openStore(location);
  try {
    const known = pair.kind === 'new' ? undefined : pair.note;
    const installationId =
      known?.installationId ?? (pair.kind === 'to note' ? pair.installation?.installationId : undefined) ?? newUuid();
    const seedDigest = seedDigestOf(seed);
    if (pair.kind !== 'known') {
      const found = pair.kind === 'to note' ? pair.installation : null;
      const generation = Math.max(known?.generation ?? 0, found?.generation ?? 0);
      const accepted = pair.kind === 'to note' && pair.accepted;
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
    const noted: InstallationNote = {
      installationId,
      nodeId,
      seedDigest,
      database: databaseOf(location),
      generation: 0,
    };
    return { store, note: await markAnew(write, store, noted) };
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Marks both anew from time to time, until it is disposed of. Calls `onExchanged` when the database is another one by
 * now, or an older copy: what it lacks may exist all the same.
 */
export function keepPair(
  write: NoteWriter,
  { store, note }: { store: Store; note: InstallationNote },
  log: Log,
  onExchanged: (error: Error) => void,
): AsyncDisposable {
  let current = note;
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
 * Writes to the directory before the database advances, and again after. Whichever step a crash, a full disk or a lost
 * answer prevents, the database is at most one ahead, and never behind.
 */
async function markAnew(write: NoteWriter, store: Store, note: InstallationNote): Promise<InstallationNote> {
  const found = await findInstallation(store.db);
  if (found?.installationId !== note.installationId || found.generation < note.generation) {
    throw new AtollError(
      'precondition',
      'The database was exchanged for another or an older one while the platform ran. The platform ends; its next ' +
        'start says what to do.',
    );
  }
  if (found.generation !== note.generation) await write({ ...note, generation: found.generation });
  const next = { ...note, generation: await advanceGeneration(store, note.installationId) };
  await write(next);
  return next;
}
