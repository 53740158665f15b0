import { statesShownAs } from '../../protocol/state.ts';
import type { Db } from './database.ts';

/** How many sandboxes of each team are shown as running. */
export async function runningCounts(db: Db): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('sandboxes')
    .select(({ fn }) => ['team_id', fn.countAll<number>().as('count')])
    .where('state', 'in', statesShownAs('running'))
    .groupBy('team_id')
    .execute();
  return new Map(rows.map(row => [row.team_id, Number(row.count)]));
}
