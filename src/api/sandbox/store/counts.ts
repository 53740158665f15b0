import type { BuildStatus } from '../../../protocol/api/template.ts';
import { statesShownAs } from '../../../protocol/state.ts';
import type { SandboxState } from '../../../protocol/state.ts';
import type { Db } from '../../database/db.ts';

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

/** How many sandboxes are in each state; states without any are left out. */
export async function stateCounts(db: Db): Promise<Map<SandboxState, number>> {
  const rows = await db
    .selectFrom('sandboxes')
    .select(({ fn }) => ['state', fn.countAll<number>().as('count')])
    .groupBy('state')
    .execute();
  return new Map(rows.map(row => [row.state, Number(row.count)]));
}

/** How many builds wait or run. */
export async function buildCounts(db: Db): Promise<Map<BuildStatus, number>> {
  const rows = await db
    .selectFrom('builds')
    .select(({ fn }) => ['status', fn.countAll<number>().as('count')])
    .where('status', 'in', ['waiting', 'building'])
    .groupBy('status')
    .execute();
  return new Map(rows.map(row => [row.status, Number(row.count)]));
}

/** How many paused sandboxes are on a machine but not in the store. */
export async function pausedAloneOn(db: Db, nodeId: string): Promise<number> {
  const row = await db
    .selectFrom('sandboxes')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('node_id', '=', nodeId)
    .where('state', '=', 'paused')
    .where(where => where.or([where('durability', 'is', null), where('durability', '!=', 'cluster')]))
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}
