import type { SandboxState } from '../../../protocol/state.ts';
import type { Selectable } from 'kysely';
import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import type { Tables } from '../../database/schema.ts';
import { isNobodyElses } from '../../replica/store/replicas.ts';
import { factColumnNames, factsOfRow, sandboxColumnNames, sandboxOfRow } from './row.ts';
import type { SandboxFacts, SandboxRecord } from '../record.ts';

/** A team's sandbox, in any state. */
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

/** The sandbox with this ID, for code that acts on nobody's behalf. */
export async function findSandboxOfAnyTeam(db: Db, sandboxId: string): Promise<SandboxRecord | null> {
  const [row] = await byId(db, { sandboxIds: [sandboxId] });
  return row ? sandboxOfRow(row) : null;
}

/** The sandbox of an execution, or null when that has ended or was replaced by another. */
export async function findExecution(
  db: Db,
  { sandboxId, executionId }: { sandboxId: string; executionId: string },
): Promise<SandboxRecord | null> {
  const [row] = await ofExecution(db, { sandboxId, executionId });
  return row ? sandboxOfRow(row) : null;
}

const ofExecution = prepared<{ sandboxId: string; executionId: string }, Selectable<Tables['sandboxes']>>(
  (db, parameter) =>
    db
      .selectFrom('sandboxes')
      .select(sandboxColumnNames)
      .where('sandbox_id', '=', parameter('sandboxId'))
      .where('execution_id', '=', parameter('executionId')),
);

/** Every sandbox in one of `states`, of all teams. For the reconcilers. */
export async function sandboxesIn(db: Db, states: readonly SandboxState[]): Promise<SandboxFacts[]> {
  return (await inStates(db, {}, states)).map(factsOfRow);
}

type FactsRow = Pick<Selectable<Tables['sandboxes']>, (typeof factColumnNames)[number]>;

const inStates = prepared<object, FactsRow, SandboxState>((db, _parameter, states) =>
  db.selectFrom('sandboxes').select(factColumnNames).where('state', 'in', states),
);

/** The IDs of all sandboxes, in any state. */
export async function allSandboxIds(db: Db): Promise<string[]> {
  return (await allIds(db, {})).map(row => row.sandbox_id);
}

const allIds = prepared<object, { sandbox_id: string }>(db => db.selectFrom('sandboxes').select('sandbox_id'));

/**
 * Sandboxes in one of `states` whose network has header rules, or might have: of one team, or of all teams if they have
 * identity tokens.
 */
export async function sandboxesWithRules(
  db: Db,
  states: readonly SandboxState[],
  of: { teamId: string } | 'tokens',
): Promise<SandboxFacts[]> {
  let query = db
    .selectFrom('sandboxes')
    .select(factColumnNames)
    .where('state', 'in', states)
    .where('network_json', 'like', '%"rules":%');
  query = of === 'tokens' ? query.where('iam_json', 'is not', null) : query.where('team_id', '=', of.teamId);
  return (await query.execute()).map(factsOfRow);
}

/** The sandboxes of all teams in one of `states` that are on a machine or on their way there; uses indexes. */
export async function sandboxesOn(db: Db, nodeId: string, states: readonly SandboxState[]): Promise<SandboxFacts[]> {
  return (await onNode(db, { nodeId }, states)).map(factsOfRow);
}

const onNode = prepared<{ nodeId: string }, FactsRow, SandboxState>((db, parameter, states) =>
  db
    .selectFrom('sandboxes')
    .select(factColumnNames)
    .where('state', 'in', states)
    .where(({ or, eb }) => or([eb('node_id', '=', parameter('nodeId')), eb('next_node_id', '=', parameter('nodeId'))])),
);

/** Those among `sandboxIds` that are on another machine than `nodeId`. */
export async function sandboxesElsewhere(db: Db, sandboxIds: readonly string[], nodeId: string): Promise<Set<string>> {
  const rows = await db
    .selectFrom('sandboxes')
    .select('sandbox_id')
    .where('sandbox_id', 'in', sandboxIds)
    .where('node_id', '!=', nodeId)
    .execute();
  return new Set(rows.map(row => row.sandbox_id));
}

/** How many complete sandboxes may be read at a time. */
export const sandboxesAtOnce = 100;

/** The existing ones of these sandboxes, in any state; ask for at most `sandboxesAtOnce`. */
export async function sandboxesById(db: Db, sandboxIds: ReadonlySet<string>): Promise<SandboxRecord[]> {
  if (sandboxIds.size === 0) return [];
  return (await byId(db, { sandboxIds: [...sandboxIds] })).map(sandboxOfRow);
}

const byId = prepared<{ sandboxIds: readonly string[] }, Selectable<Tables['sandboxes']>>((db, parameter) =>
  db.selectFrom('sandboxes').select(sandboxColumnNames).where('sandbox_id', 'in', parameter.each('sandboxIds')),
);

/** Sandboxes in one of `states` on which no other process works that is alive at `nowUs`. */
export async function sandboxesLeftIn(
  db: Db,
  states: readonly SandboxState[],
  replica: { ownId: string; nowUs: number },
): Promise<SandboxFacts[]> {
  return (await leftIn(db, replica, states)).map(factsOfRow);
}

const leftIn = prepared<{ ownId: string; nowUs: number }, FactsRow, SandboxState>((db, parameter, states) =>
  db
    .selectFrom('sandboxes')
    .select(factColumnNames)
    .where('state', 'in', states)
    .where(where => isNobodyElses(where, 'sandboxes', { ownId: parameter('ownId'), nowUs: parameter('nowUs') })),
);

/**
 * Takes over the work on a sandbox that is still as it was read. Null when it has changed, or another process was
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
 * Running sandboxes whose time is over by `nowUs` and that should then be killed or paused, the longest overdue first.
 */
export async function sandboxesDue(
  db: Db,
  then: 'kill' | 'pause',
  nowUs: number,
  limit: number,
): Promise<SandboxFacts[]> {
  const rows = await due(db, { nowUs, autoPause: then === 'pause' ? 1 : 0, limit });
  return rows.map(factsOfRow);
}

const due = prepared<{ nowUs: number; autoPause: 0 | 1; limit: number }, FactsRow>((db, parameter) =>
  db
    .selectFrom('sandboxes')
    .select(factColumnNames)
    .where('state', '=', 'running')
    .where('end_at_us', '<=', parameter('nowUs'))
    .where('auto_pause', '=', parameter('autoPause'))
    .orderBy('end_at_us')
    .limit(parameter('limit')),
);

/** What to do with running sandboxes whose time is over by `nowUs`: mostly nothing. */
export async function endsDue(db: Db, nowUs: number): Promise<Set<'kill' | 'pause'>> {
  return new Set((await endings(db, { nowUs })).map(row => (row.auto_pause === 1 ? 'pause' : 'kill')));
}

const endings = prepared<{ nowUs: number }, { auto_pause: number }>((db, parameter) =>
  db
    .selectFrom('sandboxes')
    .select('auto_pause')
    .distinct()
    .where('state', '=', 'running')
    .where('end_at_us', '<=', parameter('nowUs')),
);

/** Every sandbox of a team, in any state. */
export async function sandboxesOfTeam(db: Db, teamId: string): Promise<SandboxFacts[]> {
  const rows = await db.selectFrom('sandboxes').select(factColumnNames).where('team_id', '=', teamId).execute();
  return rows.map(factsOfRow);
}
