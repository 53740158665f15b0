import { sql, type CompiledQuery } from 'kysely';
import { occupyingStates } from '../../protocol/state.ts';
import type { Db } from '../database/db.ts';
import { assert } from '../../base/error.ts';
import { prepared, together } from '../database/prepared.ts';
import type { WantedNodeStatus } from '../database/schema.ts';
import { isCluster, type Nodes } from './nodes.ts';

/** What the operator wants of a machine, and since when. */
export type NodeStatusRecord = { nodeId: string; status: WantedNodeStatus; changedAtUs: number };

/** An operator's setting for a machine, or null where there is none. */
export async function findNodeStatus(db: Db, nodeId: string): Promise<NodeStatusRecord | null> {
  const row = await db.selectFrom('nodes').selectAll().where('node_id', '=', nodeId).executeTakeFirst();
  return row ? { nodeId: row.node_id, status: row.status, changedAtUs: row.status_changed_at_us } : null;
}

/** The machines that take no new sandboxes. */
export async function drainingNodes(db: Db): Promise<Set<string>> {
  return idsIn(await draining(db, {}));
}

/** The same, with the allocations of a few machines. */
export async function drainingAndAllocations(
  db: Db,
  nodeIds: readonly string[],
): Promise<{ closed: Set<string>; allocations: Map<string, NodeAllocation> }> {
  const [closed, rows] = await together(db, [draining.queryOf(db, {}), allocationsQuery(db, nodeIds)]);
  return { closed: idsIn(closed), allocations: allocationsIn(rows) };
}

const idsIn = (rows: readonly { node_id: string }[]) => new Set(rows.map(row => row.node_id));

const draining = prepared<object, { node_id: string }>(db =>
  db.selectFrom('nodes').select('node_id').where('status', '!=', 'ready'),
);

/** How a machine is emptied: by pauses, by moves, or by moves where possible and pauses otherwise. */
const emptying = ['pausing', 'moving', 'evicting'] as const;

/** One way to empty a machine. */
export type Emptying = (typeof emptying)[number];

/** Whether a machine is being emptied by acting on its sandboxes. */
export const isEmptying = (status: string): status is Emptying => emptying.some(each => each === status);

/** The machines whose sandboxes should be paused or moved, and how. */
export async function nodesToEmpty(db: Db): Promise<Map<string, Emptying>> {
  const rows = await toEmpty(db, {});
  return new Map(rows.flatMap(row => (isEmptying(row.status) ? [[row.node_id, row.status]] : [])));
}

const toEmpty = prepared<object, { node_id: string; status: WantedNodeStatus }>(db =>
  db.selectFrom('nodes').select(['node_id', 'status']).where('status', 'in', emptying),
);

/** Writes what the operator wants of a machine. */
export async function setNodeStatus(db: Db, { nodeId, status, changedAtUs }: NodeStatusRecord): Promise<void> {
  await db
    .insertInto('nodes')
    .values({ node_id: nodeId, status, status_changed_at_us: changedAtUs })
    .onConflict(conflict => conflict.column('node_id').doUpdateSet({ status, status_changed_at_us: changedAtUs }))
    .execute();
}

/** The same if `from` is still wanted of it, which is `ready` for a machine without a setting. False: it is not. */
export async function changeNodeStatusFrom(
  db: Db,
  { nodeId, status, changedAtUs }: NodeStatusRecord,
  from: WantedNodeStatus,
): Promise<boolean> {
  const changed = await db
    .updateTable('nodes')
    .set({ status, status_changed_at_us: changedAtUs })
    .where('node_id', '=', nodeId)
    .where('status', '=', from)
    .returning('node_id')
    .executeTakeFirst();
  if (changed || from !== 'ready') return changed !== undefined;
  const inserted = await db
    .insertInto('nodes')
    .values({ node_id: nodeId, status, status_changed_at_us: changedAtUs })
    .onConflict(conflict => conflict.column('node_id').doNothing())
    .returning('node_id')
    .executeTakeFirst();
  return inserted !== undefined;
}

/**
 * What the sandboxes of a machine were promised, how many there are, and how many are starting. A sandbox being moved
 * counts for both machines: if the move fails, it runs on where it was.
 */
export type NodeAllocation = { cpuCount: number; memoryMiB: number; sandboxes: number; starting: number };

/** Allocation of one machine. */
export async function nodeAllocation(db: Db, nodeId: string): Promise<NodeAllocation> {
  return (await nodeAllocations(db, [nodeId])).get(nodeId) ?? nothingPromised;
}

/** The allocation of a machine that has no sandboxes. */
export const nothingPromised: NodeAllocation = { cpuCount: 0, memoryMiB: 0, sandboxes: 0, starting: 0 };

/** The most machines that one query names. */
export const namedNodesMax = 3;

/** Allocations of every machine that has sandboxes, or of at most `namedNodesMax` named ones. */
export async function nodeAllocations(db: Db, nodeIds?: readonly string[]): Promise<Map<string, NodeAllocation>> {
  return allocationsIn((await db.executeQuery(allocationsQuery(db, nodeIds))).rows);
}

/** The query whose answer `allocationsIn` reads. */
export function allocationsQuery(db: Db, nodeIds?: readonly string[]): CompiledQuery<AllocationRow> {
  const [first = '', second = first, third = first] = nodeIds ?? [];
  assert((nodeIds?.length ?? 0) <= namedNodesMax, 'more machines are named than a query takes');
  return allocations.queryOf(db, { first, second, third }, nodeIds === undefined ? [] : ['named']);
}

/** Allocations by machine. */
export const allocationsIn = (rows: readonly AllocationRow[]): Map<string, NodeAllocation> =>
  new Map(
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

type AllocationRow = { node_id: string; cpus: number; memory: number; sandboxes: number; starting: number };
type NamedNodes = { first: string; second: string; third: string };

const allocations = prepared<NamedNodes, AllocationRow, 'named'>((db, parameter, words) => {
  const sizes = ['cpu_count', 'memory_mib', 'state'] as const;
  let there = db
    .selectFrom('sandboxes')
    .select(['node_id', ...sizes])
    .where('state', 'in', occupyingStates);
  let coming = db
    .selectFrom('sandboxes')
    .select([sql<string>`next_node_id`.as('node_id'), ...sizes])
    .where('state', '=', 'moving')
    .whereRef('next_node_id', '!=', 'node_id');
  if (words.includes('named')) {
    const ids = (['first', 'second', 'third'] as const).map(name => parameter(name));
    there = there.where('node_id', 'in', ids);
    coming = coming.where('next_node_id', 'in', ids);
  }
  return db
    .selectFrom(there.unionAll(coming).as('placed'))
    .select(({ fn }) => [
      'node_id',
      sql<number>`coalesce(sum(cpu_count), 0)`.as('cpus'),
      sql<number>`coalesce(sum(memory_mib), 0)`.as('memory'),
      fn.countAll<number>().as('sandboxes'),
      sql<number>`coalesce(sum(case when state = 'starting' then 1 else 0 end), 0)`.as('starting'),
    ])
    .groupBy('node_id');
});

/** Whether a machine of a cluster was taken out for good: no process talks to it any more. */
export async function isForgotten({ db, nodes }: { db: Db; nodes: Nodes }, nodeId: string): Promise<boolean> {
  if (!isCluster(nodes)) return false;
  const row = await db.selectFrom('cluster_nodes').select('node_id').where('node_id', '=', nodeId).executeTakeFirst();
  return row === undefined;
}

/** Whether nothing runs on a machine of a cluster any more: it was given up, or taken out for good. */
export async function isGone(db: Db, nodeId: string): Promise<boolean> {
  const row = await db.selectFrom('cluster_nodes').select('given_up').where('node_id', '=', nodeId).executeTakeFirst();
  return row === undefined || row.given_up === 1;
}
