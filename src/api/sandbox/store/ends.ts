import type { ComingEnd } from '../../../protocol/cluster.ts';
import type { Db } from '../../database/db.ts';

/** Ends of one machine that are read at a time, the earliest first. */
const endsMax = 5_000;

/** The sandboxes of a machine that run and whose time is over by `untilUs`, seen from `nowUs`. */
export async function comingEnds(
  db: Db,
  nodeId: string,
  { nowUs, untilUs }: { nowUs: number; untilUs: number },
): Promise<ComingEnd[]> {
  const rows = await db
    .selectFrom('sandboxes')
    .select(['sandbox_id', 'execution_id', 'end_at_us', 'auto_pause', 'auto_pause_memory'])
    .where('node_id', '=', nodeId)
    .where('state', '=', 'running')
    .where('end_at_us', '<=', untilUs)
    .orderBy('end_at_us')
    .limit(endsMax)
    .execute();
  return rows.map(row => ({
    sandboxId: row.sandbox_id,
    executionId: row.execution_id,
    inMs: (row.end_at_us - nowUs) / 1000,
    then: row.auto_pause ? 'pause' : 'kill',
    memory: Boolean(row.auto_pause_memory),
  }));
}
