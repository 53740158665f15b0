import type { Db } from '../../database/db.ts';

/** The node that was told to build; null where none was. */
export async function nodeOfBuild(db: Db, buildId: string): Promise<string | null> {
  const row = await db.selectFrom('builds').select('node_id').where('build_id', '=', buildId).executeTakeFirst();
  return row?.node_id ?? null;
}

/** Says which node is told to build, before it is. */
export async function putNodeOfBuild(db: Db, buildId: string, nodeId: string): Promise<void> {
  await db.updateTable('builds').set({ node_id: nodeId }).where('build_id', '=', buildId).execute();
}

/** How many builds run on each node. */
export async function runningBuildsByNode(db: Db): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('builds')
    .select(count => ['node_id', count.fn.countAll<number>().as('count')])
    .where('status', '=', 'building')
    .groupBy('node_id')
    .execute();
  return new Map(rows.flatMap(row => (row.node_id === null ? [] : [[row.node_id, Number(row.count)] as const])));
}

/** The builds that run on a node. */
export async function buildsOnNode(db: Db, nodeId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('builds')
    .select('build_id')
    .where('node_id', '=', nodeId)
    .where('status', '=', 'building')
    .execute();
  return rows.map(row => row.build_id);
}
