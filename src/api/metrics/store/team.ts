import { sql } from 'kysely';
import type { Db } from '../../database/db.ts';

/** How long one row covers. */
export const teamMetricSeconds = 60;

/** A sighting of a team, to be added to the row of its minute. */
export type TeamSighting = { teamId: string; running: number; starts: number };

/** Adds sightings to the rows of the minute that began at `atSeconds`. */
export async function recordTeams(db: Db, atSeconds: number, sightings: readonly TeamSighting[]): Promise<void> {
  if (sightings.length === 0) return;
  const rows = sightings.map(({ teamId, running, starts }) => ({
    team_id: teamId,
    at_seconds: atSeconds,
    concurrent: running,
    latest: running,
    starts,
  }));
  await db
    .insertInto('team_metrics')
    .values(rows)
    .onConflict(conflict =>
      conflict
        .columns(['team_id', 'at_seconds'])
        .doUpdateSet(update => ({
          concurrent: update
            .case()
            .when('excluded.concurrent', '>', update.ref('team_metrics.concurrent'))
            .then(update.ref('excluded.concurrent'))
            .else(update.ref('team_metrics.concurrent'))
            .end(),
          latest: update.ref('excluded.latest'),
          starts: update('team_metrics.starts', '+', update.ref('excluded.starts')),
        })),
    )
    .execute();
}

/** A span of time. */
export type TeamSpan = {
  startSeconds: number;
  concurrent: number;
  starts: number;
  latest: number;
  /** What was running at the end of each minute, counted for that minute. */
  sandboxSeconds: number;
};

/** A range of time, Unix seconds, both ends included. */
export type TeamRange = { startSeconds: number; endSeconds: number };

/** A latest count is below this, so that it can be packed together with its minute. */
const packed = 2 ** 20;

/** The rows of a range combined into spans of `stepSeconds` from its start on; spans without rows are left out. */
export async function teamSpans(
  db: Db,
  teamId: string,
  { startSeconds, endSeconds }: TeamRange,
  stepSeconds: number,
): Promise<TeamSpan[]> {
  // Literals, because PostgreSQL treats two parameters of the same value as two expressions.
  const span = sql<number>`(at_seconds - ${sql.lit(startSeconds)}) / ${sql.lit(stepSeconds)}`;
  const rows = await db
    .selectFrom('team_metrics')
    .select(({ fn }) => [
      span.as('span'),
      fn.max<number>('concurrent').as('concurrent'),
      fn.sum<number>('starts').as('starts'),
      fn.sum<number>('latest').as('minutes'),
      // The count of the last minute, in the same pass.
      sql<number>`max(at_seconds * ${sql.lit(packed)} + latest)`.as('latest'),
    ])
    .where('team_id', '=', teamId)
    // A minute that began before the range and ends in it belongs to the first span.
    .where('at_seconds', '>', startSeconds - teamMetricSeconds)
    .where('at_seconds', '<=', endSeconds)
    .groupBy(span)
    .orderBy(span)
    .execute();
  return rows.map(row => ({
    startSeconds: startSeconds + Number(row.span) * stepSeconds,
    concurrent: Number(row.concurrent),
    starts: Number(row.starts),
    latest: Number(row.latest) % packed,
    sandboxSeconds: Number(row.minutes) * teamMetricSeconds,
  }));
}

/** How many sandboxes were running at the last look before `beforeSeconds`; null where there was none. */
export async function latestBefore(db: Db, teamId: string, beforeSeconds: number): Promise<number | null> {
  const row = await db
    .selectFrom('team_metrics')
    .select('latest')
    .where('team_id', '=', teamId)
    .where('at_seconds', '<=', beforeSeconds - teamMetricSeconds)
    .orderBy('at_seconds', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.latest ?? null;
}

/** The row of a range with the highest value; of several, the latest. */
export async function highestOfTeam(
  db: Db,
  teamId: string,
  { startSeconds, endSeconds }: TeamRange,
  column: 'concurrent' | 'starts',
): Promise<{ atSeconds: number; value: number } | null> {
  const row = await db
    .selectFrom('team_metrics')
    .select(['at_seconds', `${column} as value`])
    .where('team_id', '=', teamId)
    .where('at_seconds', '>', startSeconds - teamMetricSeconds)
    .where('at_seconds', '<=', endSeconds)
    .orderBy(column, 'desc')
    .orderBy('at_seconds', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row ? { atSeconds: row.at_seconds, value: row.value } : null;
}

/** Removes rows from before `beforeSeconds`. */
export async function pruneTeamMetrics(db: Db, beforeSeconds: number): Promise<void> {
  await db.deleteFrom('team_metrics').where('at_seconds', '<', beforeSeconds).execute();
}
