import type { BuildLogEntry } from '../../../protocol/build.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { appendBuildLog, buildLogLength } from './log.ts';

/** The node that carries out a build. */
type BuildPlace = {
  nodeId: string;
  teamId: string;
  /** Null once it has ended. */
  sealedPlan: string | null;
  /** Number of nodes that were told to build it and were lost. */
  nodesLost: number;
  /** Number of lines in its log before those of this node. */
  logOffset: number;
};

/** The node that carries out a build; null where no node was told to. */
export async function placeOfBuild(db: Db, buildId: string): Promise<BuildPlace | null> {
  const row = await db
    .selectFrom('builds')
    .innerJoin('templates', 'templates.template_id', 'builds.template_id')
    .select(['node_id', 'team_id', 'sealed_plan', 'nodes_lost', 'log_offset'])
    .where('build_id', '=', buildId)
    .executeTakeFirst();
  if (!row || row.node_id === null) return null;
  return {
    nodeId: row.node_id,
    teamId: row.team_id,
    sealedPlan: row.sealed_plan,
    nodesLost: row.nodes_lost,
    logOffset: row.log_offset,
  };
}

/** Records which node will be told to build what, before it is told. */
export async function putPlaceOfBuild(
  db: Db,
  buildId: string,
  { nodeId, sealedPlan }: Pick<BuildPlace, 'nodeId' | 'sealedPlan'>,
): Promise<void> {
  await db
    .updateTable('builds')
    .set({ node_id: nodeId, sealed_plan: sealedPlan })
    .where('build_id', '=', buildId)
    .execute();
}

/**
 * Gives a build that runs on a lost node to another one, with a line of its log that says so. False where the build has
 * ended or another process has done so.
 */
export async function moveBuildOn(
  db: Db,
  build: { buildId: string; from: string; to: string },
  notice: BuildLogEntry,
): Promise<boolean> {
  const { buildId } = build;
  return inTransaction(db, async db => {
    const length = await buildLogLength(db, buildId);
    const row = await db
      .updateTable('builds')
      .set(update => ({ node_id: build.to, nodes_lost: update('nodes_lost', '+', 1), log_offset: length + 1 }))
      .where('build_id', '=', buildId)
      .where('status', '=', 'building')
      .where('node_id', '=', build.from)
      .returning('build_id')
      .executeTakeFirst();
    if (row) await appendBuildLog(db, buildId, length, [notice]);
    return row !== undefined;
  });
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
