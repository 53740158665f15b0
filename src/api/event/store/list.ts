import { eventBounds } from '../../../protocol/api/event.ts';
import type { EventSubject, EventType } from '../../../protocol/api/event.ts';
import type { Db } from '../../database/db.ts';
import { inBatches } from './history.ts';

/** Which events are asked for; all must match. */
export type EventFilter = { kind?: EventSubject; subjectId?: string; types?: readonly EventType[] };
/** Which part of a list of events is asked for. */
type EventPage = { offset: number; limit: number; oldestFirst: boolean };

/** Events of a team as JSON texts, in the order in which they happened or the other way round. */
export async function listEvents(db: Db, teamId: string, filter: EventFilter, page: EventPage): Promise<string[]> {
  let query = db.selectFrom('events').select('body_json').where('team_id', '=', teamId);
  if (filter.kind !== undefined) query = query.where('subject_kind', '=', filter.kind);
  if (filter.subjectId !== undefined) query = query.where('subject_id', '=', filter.subjectId);
  if (filter.types !== undefined) query = query.where('type', 'in', filter.types);
  const rows = await query
    .orderBy('sequence', page.oldestFirst ? 'asc' : 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return rows.map(row => row.body_json);
}

/** Forgets events from before `beforeUs`, and of each team the oldest beyond its maximum, with their deliveries. */
export async function pruneEvents(
  db: Db,
  beforeUs: number,
  perTeamMax: number = eventBounds.perTeamMax,
): Promise<void> {
  await inBatches(async limit => {
    const old = db.selectFrom('events').select('sequence').where('at_us', '<', beforeUs).limit(limit);
    return (await db.deleteFrom('events').where('sequence', 'in', old).executeTakeFirst()).numDeletedRows;
  });
  for (const { team_id } of await db.selectFrom('teams').select('team_id').execute())
    await pruneTeam(db, team_id, perTeamMax);
}

async function pruneTeam(db: Db, teamId: string, perTeamMax: number): Promise<void> {
  const newestToGo = await db
    .selectFrom('events')
    .select('sequence')
    .where('team_id', '=', teamId)
    .orderBy('sequence', 'desc')
    .offset(perTeamMax)
    .limit(1)
    .executeTakeFirst();
  if (!newestToGo) return;
  await inBatches(async limit => {
    const old = db
      .selectFrom('events')
      .select('sequence')
      .where('team_id', '=', teamId)
      .where('sequence', '<=', newestToGo.sequence)
      .limit(limit);
    return (await db.deleteFrom('events').where('sequence', 'in', old).executeTakeFirst()).numDeletedRows;
  });
}
