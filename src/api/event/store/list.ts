import { sql } from 'kysely';
import { eventBounds } from '../../../protocol/api/event.ts';
import type { EventSubject, EventType } from '../../../protocol/api/event.ts';
import type { Db } from '../../database/db.ts';
import { prepared, type ParameterOf } from '../../database/prepared.ts';
import { inBatches } from './history.ts';

/** Which events are asked for; all must match. */
export type EventFilter = { kind?: EventSubject; subjectId?: string; types?: readonly EventType[] };
/** Which part of a list of events is asked for. */
type EventPage = { offset: number; limit: number; oldestFirst: boolean };

/** Events of a team as JSON texts, in the order in which they happened or the other way round. */
export async function listEvents(db: Db, teamId: string, filter: EventFilter, page: EventPage): Promise<string[]> {
  const { kind, subjectId, types } = filter;
  const words: FilterWord[] = [
    ...(kind === undefined ? [] : (['kind'] as const)),
    ...(subjectId === undefined ? [] : (['subject'] as const)),
    ...(page.oldestFirst ? (['oldest-first'] as const) : []),
  ];
  const { limit, offset } = page;
  const values = { teamId, kind: kind ?? 'sandbox', subjectId: subjectId ?? '', limit, offset };
  // Lists of types are the caller's: they make no queries that are kept.
  const rows = types ? await ofTypes(db, values, words, types) : await pageOf(db, values, words);
  return rows.map(row => row.body_json);
}

type FilterWord = 'kind' | 'subject' | 'oldest-first';
type PageValues = { teamId: string; kind: EventSubject; subjectId: string; limit: number; offset: number };
type Row = { body_json: string };

const pageOf = prepared<PageValues, Row, FilterWord>((db, parameter, words) => queryOf(db, parameter, words));

function ofTypes(db: Db, values: PageValues, words: FilterWord[], types: readonly EventType[]): Promise<Row[]> {
  const literal: ParameterOf<PageValues> = name => sql`${values[name]}`;
  return queryOf(db, literal, words).where('type', 'in', types).execute();
}

function queryOf(db: Db, parameter: ParameterOf<PageValues>, words: readonly FilterWord[]) {
  let query = db.selectFrom('events').select('body_json').where('team_id', '=', parameter('teamId'));
  if (words.includes('kind')) query = query.where('subject_kind', '=', parameter('kind'));
  if (words.includes('subject')) query = query.where('subject_id', '=', parameter('subjectId'));
  return query
    .orderBy('sequence', words.includes('oldest-first') ? 'asc' : 'desc')
    .limit(parameter('limit'))
    .offset(parameter('offset'));
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
