import { occupyingStates } from '../../../protocol/state.ts';
import type { Insertable } from 'kysely';
import { inTransaction, kindOf } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import type { Tables } from '../../database/schema.ts';
import { lockTeamFor } from '../../team/store/lock.ts';
import { takeKey } from './idempotency.ts';
import type { Repeatable } from './idempotency.ts';
import { pairDigest } from './labels.ts';
import { rowOfSandbox, sandboxColumnNames } from './row.ts';
import type { SandboxRecord } from '../record.ts';
import type { TeamLimits } from '../../team/record.ts';

/** Labels that one statement writes. */
const labelsAtOnce = 1_000;

/**
 * Writes the row of a new sandbox, unless its team occupies all of its places already (`full`), has its maximum of
 * sandboxes, paused ones included (`too_many`), the machine has no room, a volume is gone or is moving to another
 * machine, or another create has the key. Counting and writing are one transaction: two creates at once can't both take
 * the last place.
 */
export async function insertSandbox(
  db: Db,
  sandbox: SandboxRecord,
  limits: Pick<TeamLimits, 'concurrentSandboxes' | 'sandboxes'>,
  repeatable?: Repeatable,
  hasRoom?: (db: Db) => Promise<boolean>,
): Promise<'inserted' | 'full' | 'too_many' | 'volume_gone' | 'volume_moves' | 'node_full' | 'key_taken'> {
  return inTransaction(db, async db => {
    const { occupied, paused } = await placesOf(db, sandbox.teamId, limits.sandboxes);
    if (occupied >= limits.concurrentSandboxes) return 'full';
    if (occupied + paused >= limits.sandboxes) return 'too_many';
    if (hasRoom && !(await hasRoom(db))) return 'node_full';
    const volumeIds = [...new Set(sandbox.volumeMounts.map(({ volumeId }) => volumeId))];
    const volumes = await volumesOf(db, volumeIds);
    if (volumes.length < volumeIds.length) return 'volume_gone';
    if (volumes.some(row => row.moving_to !== null || row.node_id !== sandbox.nodeId)) return 'volume_moves';
    if (repeatable && !(await takeKey(db, repeatable, sandbox))) return 'key_taken';
    await insertRow(db, rowOfSandbox(sandbox));
    const labels = Object.entries(sandbox.metadata ?? {}).map(([key, value]) => ({
      sandbox_id: sandbox.sandboxId,
      pair_digest: pairDigest(key, value),
    }));
    // A fork of a sandbox from before there was a limit may have more labels than one statement takes.
    for (let first = 0; first < labels.length; first += labelsAtOnce)
      await db
        .insertInto('sandbox_labels')
        .values(labels.slice(first, first + labelsAtOnce))
        .execute();
    const uses = volumeIds.map(volumeId => ({ sandbox_id: sandbox.sandboxId, volume_id: volumeId }));
    if (uses.length > 0) await db.insertInto('sandbox_volumes').values(uses).execute();
    return 'inserted';
  });
}

const insertRow = prepared<Insertable<Tables['sandboxes']>>((db, parameter) =>
  // The names are those of the table's own columns.
  db
    .insertInto('sandboxes')
    .values(Object.fromEntries(sandboxColumnNames.map(name => [name, parameter(name)])) as never),
);

/** The existing ones of these volumes, and their machines; on PostgreSQL this stays true until the transaction ends. */
async function volumesOf(db: Db, volumeIds: string[]): Promise<{ node_id: string; moving_to: string | null }[]> {
  if (volumeIds.length === 0) return [];
  const query = db.selectFrom('volumes').select(['node_id', 'moving_to']).where('volume_id', 'in', volumeIds);
  return (kindOf(db) === 'postgres' ? query.forShare() : query).execute();
}

/** How many places of its limit a team occupies; this stays true until the transaction `db` ends. */
export async function countOccupied(db: Db, teamId: string): Promise<number> {
  return (await placesOf(db, teamId, 0)).occupied;
}

/** The numbers of a team's sandboxes; of paused ones, no more than `pausedMax` are counted. */
async function placesOf(db: Db, teamId: string, pausedMax: number): Promise<{ occupied: number; paused: number }> {
  const [row] = await lockTeamFor(db, teamId, places.queryOf(db, { teamId, pausedMax }));
  return { occupied: Number(row?.occupied), paused: Number(row?.paused) };
}

const places = prepared<{ teamId: string; pausedMax: number }, { occupied: number; paused: number }>(
  (db, parameter) => {
    const ofTeam = db.selectFrom('sandboxes').where('team_id', '=', parameter('teamId'));
    const paused = ofTeam.where('state', '=', 'paused').select('state').limit(parameter('pausedMax'));
    return db.selectNoFrom([
      ofTeam
        .where('state', 'in', occupyingStates)
        .select(row => row.fn.countAll<number>().as('count'))
        .as('occupied'),
      db
        .selectFrom(paused.as('some'))
        .select(row => row.fn.countAll<number>().as('count'))
        .as('paused'),
    ]);
  },
);
