import { sql } from 'kysely';
import { occupyingStates } from '../../protocol/state.ts';
import type { Db } from '../database/db.ts';
import { prepared } from '../database/prepared.ts';
import type { WantedNodeStatus } from '../database/schema.ts';

/** What the operator wants of a machine, and since when. */
export type NodeStatusRecord = { nodeId: string; status: WantedNodeStatus; changedAtUs: number };

/** What an operator said of a machine, or null for one that nothing was said of. */
export async function findNodeStatus(db: Db, nodeId: string): Promise<NodeStatusRecord | null> {
  const row = await db.selectFrom('nodes').selectAll().where('node_id', '=', nodeId).executeTakeFirst();
  return row ? { nodeId: row.node_id, status: row.status, changedAtUs: row.status_changed_at_us } : null;
}

/** The machines that take no new sandboxes. */
export async function drainingNodes(db: Db): Promise<Set<string>> {
  const rows = await draining(db, {});
  return new Set(rows.map(row => row.node_id));
}

const draining = prepared<object, { node_id: string }>(db =>
  db.selectFrom('nodes').select('node_id').where('status', '!=', 'ready'),
);

/** The machines whose sandboxes are to be paused or moved, with which of both. */
export async function nodesToEmpty(db: Db): Promise<Map<string, 'pausing' | 'moving'>> {
  const rows = await db
    .selectFrom('nodes')
    .select(['node_id', 'status'])
    .where('status', 'in', ['pausing', 'moving'])
    .execute();
  return new Map(rows.map(row => [row.node_id, row.status === 'moving' ? 'moving' : 'pausing']));
}

/** Writes what the operator wants of a machine. */
export async function setNodeStatus(db: Db, { nodeId, status, changedAtUs }: NodeStatusRecord): Promise<void> {
  await db
    .insertInto('nodes')
    .values({ node_id: nodeId, status, status_changed_at_us: changedAtUs })
    .onConflict(conflict => conflict.column('node_id').doUpdateSet({ status, status_changed_at_us: changedAtUs }))
    .execute();
}

/**
 * What the sandboxes of a machine were promised, and how many there are and are starting. One that is moved counts for
 * the machine that is to have it.
 */
export type NodeAllocation = { cpuCount: number; memoryMiB: number; sandboxes: number; starting: number };

/** Allocation of one machine. */
export async function nodeAllocation(db: Db, nodeId: string): Promise<NodeAllocation> {
  const known = await nodeAllocations(db, nodeId);
  return known.get(nodeId) ?? { cpuCount: 0, memoryMiB: 0, sandboxes: 0, starting: 0 };
}

/** Allocations of every machine that has sandboxes, or of one. */
export async function nodeAllocations(db: Db, nodeId?: string): Promise<Map<string, NodeAllocation>> {
  const placeOf = sql<string>`coalesce(next_node_id, node_id)`;
  let query = db
    .selectFrom('sandboxes')
    .select(({ fn, eb }) => [
      placeOf.as('node_id'),
      fn.coalesce(fn.sum<number>('cpu_count'), eb.val(0)).as('cpus'),
      fn.coalesce(fn.sum<number>('memory_mib'), eb.val(0)).as('memory'),
      fn.countAll<number>().as('sandboxes'),
      fn
        .coalesce(fn.sum<number>(eb.case().when('state', '=', 'starting').then(1).else(0).end()), eb.val(0))
        .as('starting'),
    ])
    .where('state', 'in', occupyingStates)
    .groupBy(placeOf);
  if (nodeId !== undefined)
    query = query.where(({ or, and, eb }) =>
      // Each of both by an index.
      or([eb('node_id', '=', nodeId), and([eb('state', '=', 'moving'), eb('next_node_id', '=', nodeId)])]),
    );
  const rows = await query.execute();
  return new Map(
    rows.map(row => [
      row.node_id,
      {
        cpuCount: Number(row.cpus),
        memoryMiB: Number(row.memory),
        sandboxes: Number(row.sandboxes),
        starting: Number(row.starting),
      },
    ]),
  );
}

/** Whether a machine of a cluster was taken out for good: nobody speaks with it any more. */
export async function isForgotten(db: Db, nodeId: string): Promise<boolean> {
  const row = await db.selectFrom('cluster_nodes').select('node_id').where('node_id', '=', nodeId).executeTakeFirst();
  return row === undefined;
}

/** Whether nothing runs on a machine of a cluster any more: it was given up, or taken out for good. */
export async function isGone(db: Db, nodeId: string): Promise<boolean> {
  const row = await db.selectFrom('cluster_nodes').select('given_up').where('node_id', '=', nodeId).executeTakeFirst();
  return row === undefined || row.given_up === 1;
}
