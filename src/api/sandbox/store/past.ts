import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';

/** Records whose a sandbox was whose row was removed. */
export async function recordPastSandbox(
  db: Db,
  row: { sandbox_id: string; team_id: string; node_id: string },
): Promise<void> {
  await insertPast(db, { ...row, ended_at_us: Date.now() * 1000 });
}

const insertPast = prepared<{ sandbox_id: string; team_id: string; node_id: string; ended_at_us: number }>(
  (db, parameter) =>
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

/** The machine of a sandbox. */
type SandboxPlace = { sandboxId: string; nodeId: string };

/** Where the sandboxes among `ids` are, or were, that belong to the team. */
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
