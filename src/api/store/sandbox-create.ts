import type { Kysely } from 'kysely';
import { occupyingStates } from '../../protocol/state.ts';
import type { Store } from './database.ts';
import { pairDigest } from './sandbox-labels.ts';
import { rowOfSandbox } from './sandbox-row.ts';
import type { SandboxRecord } from './sandbox-row.ts';
import type { Tables } from './schema.ts';

/**
 * Writes the row of a new sandbox unless its team already occupies `concurrentMax` places, or a volume of it is gone.
 * Counting and writing are one transaction: two creates at once can't both take the last place.
 */
export async function insertSandbox(store: Store, sandbox: SandboxRecord, concurrentMax: number): Promise<'inserted' | 'full' | 'volume_gone'> {
  return store.db.transaction().execute(async db => {
    // PostgreSQL runs transactions side by side: the team's row is the lock that makes them take turns.
    if (store.kind === 'postgres') {
      await db.selectFrom('teams').select('team_id').where('team_id', '=', sandbox.teamId).forUpdate().execute();
    }
    if ((await countOccupied(db, sandbox.teamId)) >= concurrentMax) return 'full';
    const volumeIds = [...new Set(sandbox.volumeMounts.map(({ volumeId }) => volumeId))];
    if ((await countVolumes(store, db, volumeIds)) < volumeIds.length) return 'volume_gone';
    await db.insertInto('sandboxes').values(rowOfSandbox(sandbox)).execute();
    const labels = Object.entries(sandbox.metadata ?? {}).map(([key, value]) => ({
      sandbox_id: sandbox.sandboxId,
      pair_digest: pairDigest(key, value),
    }));
    if (labels.length > 0) await db.insertInto('sandbox_labels').values(labels).execute();
    const volumes = volumeIds.map(volumeId => ({ sandbox_id: sandbox.sandboxId, volume_id: volumeId }));
    if (volumes.length > 0) await db.insertInto('sandbox_volumes').values(volumes).execute();
    return 'inserted';
  });
}

/** How many of these volumes there are; on PostgreSQL they stay until the transaction ends. */
async function countVolumes(store: Store, db: Kysely<Tables>, volumeIds: string[]): Promise<number> {
  if (volumeIds.length === 0) return 0;
  const query = db.selectFrom('volumes').select('volume_id').where('volume_id', 'in', volumeIds);
  return (await (store.kind === 'postgres' ? query.forShare() : query).execute()).length;
}

/** How many places of its limit a team takes now. */
export async function countOccupied(db: Kysely<Tables>, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('sandboxes')
    .select(count => count.fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .where('state', 'in', occupyingStates)
    .executeTakeFirstOrThrow();
  return Number(count);
}
