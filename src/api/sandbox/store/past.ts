import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';

type PastRow = { sandbox_id: string; team_id: string; node_id: string; ended_at_us: number };

/** Records the owner of a sandbox whose row was removed. */
export async function recordPastSandbox(db: Db, row: PastRow): Promise<void> {
  await insertPast(db, row);
}

const insertPast = prepared<PastRow>((db, parameter) =>
  db
    .insertInto('past_sandboxes')
    .values({
      sandbox_id: parameter('sandbox_id'),
      team_id: parameter('team_id'),
      node_id: parameter('node_id'),
      ended_at_us: parameter('ended_at_us'),
    })
    .onConflict(conflict => conflict.column('sandbox_id').doNothing()),
);

/** Some of the sandboxes that ended before `beforeUs` on these machines, and whose logs are only there. */
export async function endedWithoutLogs(
  db: Db,
  { nodeIds, beforeUs, limit }: { nodeIds: readonly string[]; beforeUs: number; limit: number },
): Promise<SandboxPlace[]> {
  if (nodeIds.length === 0) return [];
  const rows = await db
    .selectFrom('past_sandboxes')
    .select(['sandbox_id', 'node_id'])
    .where('logs_stored', '=', 0)
    .where('ended_at_us', '<', beforeUs)
    .where('node_id', 'in', nodeIds)
    .orderBy('ended_at_us')
    .limit(limit)
    .execute();
  return rows.map(row => ({ sandboxId: row.sandbox_id, nodeId: row.node_id }));
}

/** Records that the log of an ended sandbox is in the store. */
export async function recordLogsStored(db: Db, sandboxId: string): Promise<void> {
  await db.updateTable('past_sandboxes').set({ logs_stored: 1 }).where('sandbox_id', '=', sandboxId).execute();
}

/** Those among `sandboxIds` that have ended on another machine than `nodeId`. */
export async function endedElsewhere(db: Db, sandboxIds: readonly string[], nodeId: string): Promise<Set<string>> {
  if (sandboxIds.length === 0) return new Set();
  const rows = await db
    .selectFrom('past_sandboxes')
    .select('sandbox_id')
    .where('sandbox_id', 'in', sandboxIds)
    .where('node_id', '!=', nodeId)
    .execute();
  return new Set(rows.map(row => row.sandbox_id));
}

/** The machine of a sandbox. */
type SandboxPlace = { sandboxId: string; nodeId: string };

/** The present or last machines of those sandboxes among `ids` that belong to the team. */
export async function placesOf(db: Db, teamId: string, ids: readonly string[]): Promise<SandboxPlace[]> {
  if (ids.length === 0) return [];
  const present = db
    .selectFrom('sandboxes')
    .select(['sandbox_id', 'node_id'])
    .where('team_id', '=', teamId)
    .where('sandbox_id', 'in', ids);
  const past = db
    .selectFrom('past_sandboxes')
    .select(['sandbox_id', 'node_id'])
    .where('team_id', '=', teamId)
    .where('sandbox_id', 'in', ids);
  const rows = await present.union(past).execute();
  return rows.map(row => ({ sandboxId: row.sandbox_id, nodeId: row.node_id }));
}

/** Records that a sandbox was on a machine before it went on elsewhere: its logs and samples of that time are there. */
export async function recordHome(
  db: Db,
  { sandboxId, nodeId, leftAtUs }: { sandboxId: string; nodeId: string; leftAtUs: number },
): Promise<void> {
  await db
    .insertInto('sandbox_homes')
    .values({ sandbox_id: sandboxId, node_id: nodeId, left_at_us: leftAtUs })
    .onConflict(conflict => conflict.columns(['sandbox_id', 'node_id']).doUpdateSet({ left_at_us: leftAtUs }))
    .execute();
}

/** The machines that a sandbox was on before, except those taken out of the cluster, which have nothing any more. */
export async function homesOf(db: Db, sandboxId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('sandbox_homes')
    .innerJoin('cluster_nodes', 'cluster_nodes.node_id', 'sandbox_homes.node_id')
    .select('sandbox_homes.node_id')
    .where('sandbox_id', '=', sandboxId)
    .execute();
  return rows.map(row => row.node_id);
}

/** Forgets machines that sandboxes left before `beforeUs`: what they had from that time is gone too. */
export async function pruneHomes(db: Db, beforeUs: number): Promise<void> {
  await db.deleteFrom('sandbox_homes').where('left_at_us', '<', beforeUs).execute();
}
