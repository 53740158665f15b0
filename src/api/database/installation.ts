import { sql } from 'kysely';
import { AtollError } from '../../base/error.ts';
import type { Store } from './database.ts';
import type { Db } from './db.ts';

/** The installation that a database belongs to. */
export type InstallationRecord = {
  /** UUID, made at the first start. */
  installationId: string;
  /** Identifies the seed that belongs to it, without revealing the seed. */
  seedDigest: string;
  /** Grows with every start and every minute: of two copies of a database, the older one has the smaller number. */
  generation: number;
  /** When an operator accepted a database that may lack what the node keeps, microseconds; null: it lacks nothing. */
  acceptedAtUs: number | null;
};

/** The installation of this state; null before the first start has recorded it. */
export async function findInstallation(db: Db): Promise<InstallationRecord | null> {
  const row = await db.selectFrom('installation').selectAll().executeTakeFirst();
  return row
    ? {
        installationId: row.installation_id,
        seedDigest: row.seed_digest,
        generation: row.generation,
        acceptedAtUs: row.accepted_at_us,
      }
    : null;
}

/** Records the installation of this state. */
export async function putInstallation(
  db: Db,
  { installationId, seedDigest, generation, acceptedAtUs }: InstallationRecord,
): Promise<void> {
  await db.deleteFrom('installation').execute();
  await db
    .insertInto('installation')
    .values({ installation_id: installationId, seed_digest: seedDigest, generation, accepted_at_us: acceptedAtUs })
    .execute();
}

/**
 * Increases the generation, and answers it once it is on the disk: the data directory records it afterwards and must
 * never be ahead of its own database. Throws `precondition` where the state is no longer this installation's.
 */
export async function advanceGeneration(store: Store, installationId: string): Promise<number> {
  return store.db.connection().execute(async db => {
    const durably = async (mode: 'full' | 'normal') =>
      store.kind === 'sqlite' && (await sql`pragma synchronous = ${sql.raw(mode)}`.execute(db));
    await durably('full');
    try {
      const row = await db
        .updateTable('installation')
        .set(update => ({ generation: update('generation', '+', 1) }))
        .where('installation_id', '=', installationId)
        .returning('generation')
        .executeTakeFirst();
      if (!row)
        throw new AtollError(
          'precondition',
          'The database is no longer that of this installation: it was exchanged while the platform ran.',
        );
      return row.generation;
    } finally {
      await durably('normal');
    }
  });
}

/** Allows deleting again what the store does not know: an operator has checked it. */
export async function settleInstallation(db: Db): Promise<void> {
  await db.updateTable('installation').set({ accepted_at_us: null }).execute();
}
