import type { SandboxState } from '../../protocol/state.ts';
import type { Db } from './database.ts';
import { sandboxOfRow } from './sandbox-row.ts';
import type { SandboxRecord } from './sandbox-row.ts';

/** The sandbox of a team, in whatever state. */
export async function findSandbox(db: Db, teamId: string, sandboxId: string): Promise<SandboxRecord | null> {
  const row = await db
    .selectFrom('sandboxes')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .where('team_id', '=', teamId)
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/** The sandbox with this ID, for what acts on nobody's behalf. */
export async function findSandboxOfAnyTeam(db: Db, sandboxId: string): Promise<SandboxRecord | null> {
  const row = await db.selectFrom('sandboxes').selectAll().where('sandbox_id', '=', sandboxId).executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/** The sandbox of an execution, or null when that is no more or was replaced by another. */
export async function findExecution(db: Db, target: { sandboxId: string; executionId: string }): Promise<SandboxRecord | null> {
  const row = await db
    .selectFrom('sandboxes')
    .selectAll()
    .where('sandbox_id', '=', target.sandboxId)
    .where('execution_id', '=', target.executionId)
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/** Every sandbox in one of `states`, of all teams. For the reconcilers and the directory. */
export async function sandboxesIn(db: Db, states: readonly SandboxState[]): Promise<SandboxRecord[]> {
  const rows = await db.selectFrom('sandboxes').selectAll().where('state', 'in', states).execute();
  return rows.map(sandboxOfRow);
}

/** Running sandboxes whose time is over by `nowUs` and that are to be killed or paused then, the longest overdue first. */
export async function sandboxesDue(db: Db, then: 'kill' | 'pause', nowUs: number, limit: number): Promise<SandboxRecord[]> {
  const rows = await db
    .selectFrom('sandboxes')
    .selectAll()
    .where('state', '=', 'running')
    .where('end_at_us', '<=', nowUs)
    .where('auto_pause', '=', then === 'pause' ? 1 : 0)
    .orderBy('end_at_us')
    .limit(limit)
    .execute();
  return rows.map(sandboxOfRow);
}

/** Every sandbox of a team, in whatever state. */
export async function sandboxesOfTeam(db: Db, teamId: string): Promise<SandboxRecord[]> {
  const rows = await db.selectFrom('sandboxes').selectAll().where('team_id', '=', teamId).execute();
  return rows.map(sandboxOfRow);
}
