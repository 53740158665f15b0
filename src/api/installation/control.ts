import { openStore, type Store } from '../database/database.ts';
import type { StoreLocation } from '../database/db.ts';
import { findInstallation, putInstallation } from '../database/installation.ts';
import { sql } from 'kysely';
import { clockDifference } from '../../base/clock-difference.ts';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { seedDigestOf } from './check.ts';

/**
 * Opens the state that control processes share: it belongs to their seed, which has to be the same for all. Errors:
 * `precondition` for another seed, and for a clock that is not the database's; those of a database that can't be
 * opened.
 */
export async function openShared(
  location: StoreLocation,
  seed: Uint8Array,
  nowMs: () => number = Date.now,
): Promise<Store> {
  const store = await openStore(location);
  try {
    await requireSameTime(store, nowMs);
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
        'The database belongs to control processes with another seed. Copy the file `seed` of the data directory ' +
          'of one of them into the one of this process (docs/cluster.md); nothing was changed.',
      );
    return store;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/** Rules go by the database's time, but certificates and signed URLs by the machine's. */
async function requireSameTime({ db }: Store, nowMs: () => number): Promise<void> {
  const { rows } = await sql<{ ms: number }>`
    select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms
  `.execute(db);
  const wrong = clockDifference(nowMs(), Number(rows[0]?.ms), "the database's");
  if (wrong === null) return;
  throw new AtollError('precondition', `A control process can't start here: ${wrong}. Nothing was changed.`);
}
