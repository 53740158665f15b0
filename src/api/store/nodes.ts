import type { Db } from './database.ts';
import type { WantedNodeStatus } from './schema.ts';

export type NodeStatusRecord = { nodeId: string; status: WantedNodeStatus; changedAtUs: number };

/** What an operator said of a machine, or null for one that nothing was said of. */
export async function findNodeStatus(db: Db, nodeId: string): Promise<NodeStatusRecord | null> {
  const row = await db.selectFrom('nodes').selectAll().where('node_id', '=', nodeId).executeTakeFirst();
  return row ? { nodeId: row.node_id, status: row.status, changedAtUs: row.status_changed_at_us } : null;
}

/** The machines that take no new sandboxes. */
export async function drainingNodes(db: Db): Promise<Set<string>> {
  const rows = await db.selectFrom('nodes').select('node_id').where('status', '!=', 'ready').execute();
  return new Set(rows.map(row => row.node_id));
}

export async function setNodeStatus(db: Db, { nodeId, status, changedAtUs }: NodeStatusRecord): Promise<void> {
  await db
    .insertInto('nodes')
    .values({ node_id: nodeId, status, status_changed_at_us: changedAtUs })
    .onConflict(conflict => conflict.column('node_id').doUpdateSet({ status, status_changed_at_us: changedAtUs }))
    .execute();
}

/** What the sandboxes of a machine were promised, and how many are starting. */
export async function nodeAllocation(
  db: Db,
  nodeId: string,
): Promise<{ cpuCount: number; memoryMiB: number; sandboxes: number; starting: number }> {
  const row = await db
    .selectFrom('sandboxes')
    .select(({ fn, eb }) => [
      fn.coalesce(fn.sum<number>('cpu_count'), eb.val(0)).as('cpus'),
      fn.coalesce(fn.sum<number>('memory_mib'), eb.val(0)).as('memory'),
      fn.countAll<number>().as('sandboxes'),
      fn.coalesce(fn.sum<number>(eb.case().when('state', '=', 'starting').then(1).else(0).end()), eb.val(0)).as('starting'),
    ])
    .where('node_id', '=', nodeId)
    .where('state', 'in', ['starting', 'running', 'pausing', 'resuming', 'snapshotting'])
    .executeTakeFirstOrThrow();
  return { cpuCount: Number(row.cpus), memoryMiB: Number(row.memory), sandboxes: Number(row.sandboxes), starting: Number(row.starting) };
}
