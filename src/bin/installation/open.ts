import { openStore, type Store } from '../../api/store/database.ts';
import { advanceGeneration, findInstallation, putInstallation } from '../../api/store/installation.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { Log } from '../../base/log.ts';
import { storeLocation } from '../accounts.ts';
import type { Identity } from '../identity.ts';
import type { Settings } from '../settings.ts';
import { databaseOf, type Pair, seedDigestOf } from './check.ts';
import type { InstallationNote } from './note.ts';

/** How often both are marked anew: of an older copy that was made since, the next start does not notice that it is older. */
const advanceIntervalMs = 60_000;

/** Puts a note in its place in the data directory, where only root can write. */
export type NoteWriter = (note: InstallationNote) => Promise<void>;

/** Opens the state of the installation that `checkPair` has found, and marks directory and database as belonging together. */
export async function openPair(settings: Settings, { nodeId, seed }: Pick<Identity, 'nodeId' | 'seed'>, pair: Pair, write: NoteWriter): Promise<{ store: Store; note: InstallationNote }> {
  const location = storeLocation(settings);
  const store = await openStore(location);
  try {
    const known = pair.kind === 'new' ? undefined : pair.note;
    const installationId = known?.installationId ?? (pair.kind === 'to note' ? pair.installation?.installationId : undefined) ?? newUuid();
    const seedDigest = seedDigestOf(seed);
    if (pair.kind !== 'known') {
      const found = pair.kind === 'to note' ? pair.installation : null;
      const generation = Math.max(known?.generation ?? 0, found?.generation ?? 0);
      const accepted = pair.kind === 'to note' && pair.accepted;
      await store.db.transaction().execute(db => putInstallation(db, { installationId, seedDigest, generation, acceptedAtUs: accepted ? Date.now() * 1000 : (found?.acceptedAtUs ?? null) }));
    }
    const noted: InstallationNote = { installationId, nodeId, seedDigest, database: databaseOf(location), generation: 0 };
    return { store, note: await markAnew(write, store, noted) };
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Marks both anew from time to time, until it is disposed. `onExchanged` is told when the database is not any more the one
 * that it was, or has gone back in time: what it lacks must not be taken for gone.
 */
export function keepPair(write: NoteWriter, { store, note }: { store: Store; note: InstallationNote }, log: Log, onExchanged: (error: Error) => void): AsyncDisposable {
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
 * What the database says is written down before it goes on, and again when it has: whichever step is lost with a crash, a full disk
 * or an answer that never came, the database is at most one ahead, and never behind.
 */
async function markAnew(write: NoteWriter, store: Store, note: InstallationNote): Promise<InstallationNote> {
  const found = await findInstallation(store.db);
  if (found?.installationId !== note.installationId || found.generation < note.generation) {
    throw new AtollError('precondition', 'The database was exchanged for another or an older one while the platform ran. The platform ends; its next start says what to do.');
  }
  if (found.generation !== note.generation) await write({ ...note, generation: found.generation });
  const next = { ...note, generation: await advanceGeneration(store, note.installationId) };
  await write(next);
  return next;
}
