import type { ComingEnd } from '../../../protocol/cluster.ts';
import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';

/** Ends of sandboxes read at a time, from all machines, the earliest first. */
const endsMax = 50_000;

/** The running sandboxes whose time is over by `untilUs`, seen from `nowUs`, by machine. */
export async function comingEnds(
  db: Db,
  { nowUs, untilUs }: { nowUs: number; untilUs: number },
): Promise<Map<string, ComingEnd[]>> {
  const ofNode = Map.groupBy(await endsBy(db, { untilUs }), row => row.node_id);
  return new Map([...ofNode].map(([nodeId, ends]) => [nodeId, ends.map(row => endOf(row, nowUs))]));
}

type Row = {
  node_id: string;
  sandbox_id: string;
  execution_id: string;
  end_at_us: number;
  auto_pause: number;
  auto_pause_memory: number;
};

const endsBy = prepared<{ untilUs: number }, Row>((db, parameter) =>
  db
    .selectFrom('sandboxes')
    .select(['node_id', 'sandbox_id', 'execution_id', 'end_at_us', 'auto_pause', 'auto_pause_memory'])
    .where('state', '=', 'running')
    .where('end_at_us', '<=', parameter('untilUs'))
    .orderBy('end_at_us')
    .limit(endsMax),
);

function endOf(row: Row, nowUs: number): ComingEnd {
  return {
    sandboxId: row.sandbox_id,
    executionId: row.execution_id,
    inMs: (row.end_at_us - nowUs) / 1000,
    then: row.auto_pause ? 'pause' : 'kill',
    memory: Boolean(row.auto_pause_memory),
  };
}
