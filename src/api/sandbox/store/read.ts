import type { SandboxState } from '../../../protocol/state.ts';
import type { Selectable } from 'kysely';
import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import type { Tables } from '../../database/schema.ts';
import { isNobodyElses } from '../../replica/store/replicas.ts';
import { sandboxColumnNames, sandboxOfRow } from './row.ts';
import type { SandboxRecord } from '../record.ts';

/** The sandbox of a team, in whatever state. */
export async function findSandbox(db: Db, teamId: string, sandboxId: string): Promise<SandboxRecord | null> {
  const [row] = await ofTeam(db, { sandboxId, teamId });
  return row ? sandboxOfRow(row) : null;
}

const ofTeam = prepared<{ sandboxId: string; teamId: string }, Selectable<Tables['sandboxes']>>((db, parameter) =>
  db
    .selectFrom('sandboxes')
    .select(sandboxColumnNames)
    .where('sandbox_id', '=', parameter('sandboxId'))
    .where('team_id', '=', parameter('teamId')),
);

/** The sandbox with this ID, for what acts on nobody's behalf. */
export async function findSandboxOfAnyTeam(db: Db, sandboxId: string): Promise<SandboxRecord | null> {
  const row = await db.selectFrom('sandboxes').selectAll().where('sandbox_id', '=', sandboxId).executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/** The sandbox of an execution, or null when that is no more or was replaced by another. */
export async function findExecution(
  db: Db,
  target: { sandboxId: string; executionId: string },
): Promise<SandboxRecord | null> {
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

/** The sandboxes of a machine in one of `states`, and those that go there, of all teams: by indexes. */
export async function sandboxesOn(db: Db, nodeId: string, states: readonly SandboxState[]): Promise<SandboxRecord[]> {
  const rows = await db
    .selectFrom('sandboxes')
    .selectAll()
    .where('state', 'in', states)
    .where(({ or, eb }) => or([eb('node_id', '=', nodeId), eb('next_node_id', '=', nodeId)]))
    .execute();
  return rows.map(sandboxOfRow);
}

/** Those of some sandboxes that there are, in whatever state. */
export async function sandboxesById(db: Db, sandboxIds: ReadonlySet<string>): Promise<SandboxRecord[]> {
  const [first = ''] = sandboxIds;
  // Most often one alone has changed.
  const rows =
    sandboxIds.size === 1
      ? await byId(db, { sandboxId: first })
      : await db
          .selectFrom('sandboxes')
          .selectAll()
          .where('sandbox_id', 'in', [...sandboxIds])
          .execute();
  return rows.map(sandboxOfRow);
}

const byId = prepared<{ sandboxId: string }, Selectable<Tables['sandboxes']>>((db, parameter) =>
  db.selectFrom('sandboxes').select(sandboxColumnNames).where('sandbox_id', '=', parameter('sandboxId')),
);

/** Sandboxes in one of `states` on which no other process works that is alive at `nowUs`. */
export async function sandboxesLeftIn(
  db: Db,
  states: readonly SandboxState[],
  replica: { ownId: string; nowUs: number },
): Promise<SandboxRecord[]> {
  const rows = await db
    .selectFrom('sandboxes')
    .selectAll()
    .where('state', 'in', states)
    .where(expressions => isNobodyElses(expressions, 'sandboxes', replica))
    .execute();
  return rows.map(sandboxOfRow);
}

/**
 * Takes over the work on a sandbox that is still as it was read. Null when it has moved on, or another process was
 * faster.
 */
export async function takeOverSandbox(
  db: Db,
  listed: Pick<SandboxRecord, 'sandboxId' | 'executionId' | 'state' | 'replicaId'>,
  replicaId: string,
): Promise<SandboxRecord | null> {
  const row = await db
    .updateTable('sandboxes')
    .set({ replica_id: replicaId })
    .where('sandbox_id', '=', listed.sandboxId)
    .where('execution_id', '=', listed.executionId)
    .where('state', '=', listed.state)
    .where('replica_id', listed.replicaId === null ? 'is' : '=', listed.replicaId)
    .returningAll()
    .executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}

/**
 * Running sandboxes whose time is over by `nowUs` and that are to be killed or paused then, the longest overdue first.
 */
export async function sandboxesDue(
  db: Db,
  then: 'kill' | 'pause',
  nowUs: number,
  limit: number,
): Promise<SandboxRecord[]> {
  const rows = await due(db, { nowUs, autoPause: then === 'pause' ? 1 : 0, limit });
  return rows.map(sandboxOfRow);
}

const due = prepared<{ nowUs: number; autoPause: 0 | 1; limit: number }, Selectable<Tables['sandboxes']>>(
  (db, parameter) =>
    db
      .selectFrom('sandboxes')
      .select(sandboxColumnNames)
      .where('state', '=', 'running')
      .where('end_at_us', '<=', parameter('nowUs'))
      .where('auto_pause', '=', parameter('autoPause'))
      .orderBy('end_at_us')
      .limit(parameter('limit')),
);

/** Every sandbox of a team, in whatever state. */
export async function sandboxesOfTeam(db: Db, teamId: string): Promise<SandboxRecord[]> {
  const rows = await db.selectFrom('sandboxes').selectAll().where('team_id', '=', teamId).execute();
  return rows.map(sandboxOfRow);
}
