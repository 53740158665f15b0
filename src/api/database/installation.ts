import { sql } from 'kysely';
import { AtollError } from '../../base/error.ts';
import type { Store } from './database.ts';
import type { Db } from './db.ts';

/** Whose state a database holds. */
export type InstallationRecord = {
  /** UUID, made at the first start. */
  installationId: string;
  /** Says which seed belongs to it, and nothing of the seed. */
  seedDigest: string;
  /** Grows with every start and every minute: of two copies of a database, the older one has the smaller number. */
  generation: number;
  /** When an operator took a database that may lack what the node keeps, microseconds; null: it lacks nothing. */
  acceptedAtUs: number | null;
};

/** Whose state this is; null before the first start has said so. */
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

/** Says whose state this is from now on. */
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
 * Counts the generation up and answers it, when it is on the disk: the data directory records it afterwards and must
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

/** What the store does not know may be deleted again: an operator has looked at it. */
export async function settleInstallation(db: Db): Promise<void> {
  await db.updateTable('installation').set({ accepted_at_us: null }).execute();
}
