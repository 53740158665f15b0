import type { Selectable } from 'kysely';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import type { Durability } from '../../../protocol/durability.ts';
import type { TeamTable } from '../../database/account-tables.ts';
import type { TeamLimits, TeamRecord } from '../record.ts';

/** The record of a row. */
export function teamOfRow(row: Selectable<TeamTable>): TeamRecord {
  return {
    teamId: row.team_id,
    name: row.name,
    slug: row.slug,
    limits: JSON.parse(row.limits_json) as Partial<TeamLimits>,
    banned: row.banned === 1,
    blocked: row.blocked === 1,
    pauseDurability: row.pause_durability,
    createdAtUs: row.created_at_us,
  };
}

/** Writes a new team. False where the slug is taken, even at the same moment. */
export async function insertTeam(db: Db, team: TeamRecord): Promise<boolean> {
  const result = await db
    .insertInto('teams')
    .values({
      team_id: team.teamId,
      name: team.name,
      slug: team.slug,
      limits_json: JSON.stringify(team.limits),
      banned: team.banned ? 1 : 0,
      blocked: team.blocked ? 1 : 0,
      pause_durability: team.pauseDurability,
      created_at_us: team.createdAtUs,
    })
    .onConflict(conflict => conflict.column('slug').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** The team with this ID or slug, or null. */
export async function findTeam(db: Db, by: { teamId: string } | { slug: string }): Promise<TeamRecord | null> {
  const query = db.selectFrom('teams').selectAll();
  const row = await (
    'teamId' in by ? query.where('team_id', '=', by.teamId) : query.where('slug', '=', by.slug)
  ).executeTakeFirst();
  return row ? teamOfRow(row) : null;
}

/** Every team, the oldest first. */
export async function listTeams(db: Db): Promise<TeamRecord[]> {
  const rows = await db.selectFrom('teams').selectAll().orderBy('created_at_us').orderBy('team_id').execute();
  return rows.map(teamOfRow);
}

/** Changes of a team's own limits: null removes one. */
type LimitsChange = { [limit in keyof TeamLimits]?: TeamLimits[limit] | null };

/** What may change of a team besides its limits. */
type TeamRowChange = { name?: string; banned?: boolean; blocked?: boolean; pauseDurability?: Durability };

/** Changes the given members, and the named limits. Null where there is no such team. */
export async function updateTeam(
  db: Db,
  teamId: string,
  change: TeamRowChange & { limits?: LimitsChange },
): Promise<TeamRecord | null> {
  if (Object.keys(change).length === 0) return findTeam(db, { teamId });
  return inTransaction(db, async db => {
    const { limits, ...rest } = change;
    return updateRow(db, teamId, { ...rest, ...(limits && { limits: await mergedLimits(db, teamId, limits) }) });
  });
}

/**
 * A team's own limits after a change. An update that changes nothing locks the row, so that two changes at a time run
 * one after the other.
 */
async function mergedLimits(db: Db, teamId: string, change: LimitsChange): Promise<Partial<TeamLimits>> {
  const row = await db
    .updateTable('teams')
    .set(update => ({ name: update.ref('name') }))
    .where('team_id', '=', teamId)
    .returning('limits_json')
    .executeTakeFirst();
  const before = row === undefined ? {} : (JSON.parse(row.limits_json) as Partial<TeamLimits>);
  return Object.fromEntries(
    Object.entries({ ...before, ...change }).filter(([, limit]) => limit !== null && limit !== undefined),
  );
}

async function updateRow(
  db: Db,
  teamId: string,
  change: TeamRowChange & { limits?: Partial<TeamLimits> },
): Promise<TeamRecord | null> {
  const row = await db
    .updateTable('teams')
    .set({
      ...(change.name !== undefined && { name: change.name }),
      ...(change.limits !== undefined && { limits_json: JSON.stringify(change.limits) }),
      ...(change.banned !== undefined && { banned: change.banned ? 1 : 0 }),
      ...(change.blocked !== undefined && { blocked: change.blocked ? 1 : 0 }),
      ...(change.pauseDurability !== undefined && { pause_durability: change.pauseDurability }),
    })
    .where('team_id', '=', teamId)
    .returningAll()
    .executeTakeFirst();
  return row ? teamOfRow(row) : null;
}
