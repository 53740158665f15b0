import { aliveUntil, correctClock, readClock } from '../database/clock.ts';
import { openStore, type Store } from '../database/database.ts';
import type { Db, StoreLocation } from '../database/db.ts';
import { findInstallation, putInstallation } from '../database/installation.ts';
import { clockDifference } from '../../base/clock-difference.ts';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { seedDigestOf } from './check.ts';

/** A process at work reports several times within this time, seconds. */
const aliveSeconds = 15;

/**
 * Opens the state that control processes share. It belongs to their seed, which must be the same for all. Errors:
 * `precondition` for another seed, and for a clock that differs from the database's; those of a database that can't be
 * opened.
 */
export async function openShared(
  location: StoreLocation,
  seed: Uint8Array,
  nowMs: () => number = Date.now,
  watchSeconds: number = aliveSeconds,
): Promise<Store> {
  const store = await openStore(location);
  try {
    await requireSameTime(store, nowMs, watchSeconds);
    const seedDigest = seedDigestOf(seed);
    // Two first starts at the same time: one waits for the other's transaction, or fails and is started again.
    const found = await store.db.transaction().execute(async db => {
      const known = await findInstallation(db);
      if (known) return known;
      const made = { installationId: newUuid(), seedDigest, generation: 0, acceptedAtUs: null };
      await putInstallation(db, made);
      return made;
    });
    if (found.seedDigest !== seedDigest)
      throw new AtollError(
        'precondition',
        'The database belongs to control processes with another seed. Copy the files `seed` and `admin-token` of ' +
          'the data directory of one of them into the one of this process (docs/cluster.md); the database was not ' +
          'changed.',
      );
    return store;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Rules go by the database's time, but certificates and signed URLs by the machine's. A correction of the database's
 * clock holds as long as some process works by it.
 */
async function requireSameTime({ db }: Store, nowMs: () => number, watchSeconds: number): Promise<void> {
  const wrong = async () => {
    const read = await readClock(db);
    const beside = (correctionUs: number) =>
      clockDifference(nowMs(), (read.nowUs + correctionUs) / 1000, "the database's");
    return { read, text: beside(read.correctionUs), isRightWithout: beside(0) === null };
  };
  const found = await wrong();
  if (found.text === null) return;
  if (found.read.correctionUs !== 0 && found.isRightWithout && !(await isAnybodyAtWork(db, watchSeconds)))
    await correctClock(db, found.read, 0);
  const { text } = await wrong();
  if (text !== null)
    throw new AtollError('precondition', `A control process can't start here: ${text}. Nothing was changed.`);
}

/** Whether any control process reports that it is alive. */
async function isAnybodyAtWork(db: Db, watchSeconds: number): Promise<boolean> {
  const before = await aliveUntil(db);
  await Bun.sleep(watchSeconds * 1000);
  const after = await aliveUntil(db);
  return [...after].some(([replicaId, untilUs]) => untilUs !== before.get(replicaId));
}
