import { sql } from 'kysely';
import type { SelectQueryBuilder } from 'kysely';
import { assert } from '../../../base/error.ts';
import { eventBounds, eventSubjects, eventTypes } from '../../../protocol/api/event.ts';
import type { EventSubject, EventType } from '../../../protocol/api/event.ts';
import type { Db } from '../../database/db.ts';
import { prepared, type ParameterOf } from '../../database/prepared.ts';
import type { Tables } from '../../database/schema.ts';
import { inBatches } from './history.ts';

/** Which events to list; all conditions must match. */
export type EventFilter = { kind?: EventSubject; subjectId?: string; types?: readonly EventType[] };
/** Which part of a list of events to read. */
type EventPage = { offset: number; limit: number; oldestFirst: boolean };

/** Events of a team as a list in JSON, in the order in which they happened or the reverse. */
export async function listEvents(db: Db, teamId: string, filter: EventFilter, page: EventPage): Promise<string> {
  const { kind, subjectId, types } = filter;
  const { limit, offset, oldestFirst } = page;
  const values = { teamId, limit, offset, end: limit + offset, subjectId: subjectId ?? '' };
  const words: Word[] = [
    ...(oldestFirst ? (['oldest-first'] as const) : []),
    ...(kind === undefined ? [] : [kind]),
    ...(subjectId === undefined ? [] : (['subject'] as const)),
  ];
  if (kind !== undefined && subjectId === undefined && !types && values.end <= nearby) {
    const [row] = await nearbyPage(db, values, words);
    if (row?.count === limit) return listOf(row);
  }
  // Lists of types come from callers, so they make no kept queries.
  const [row] = types ? await chosen(db, values, typesOf(types, kind), words) : await pageOf(db, values, words);
  return listOf(row);
}

const listOf = (row: Row | undefined) => `[${row?.bodies ?? ''}]`;

type Word = 'oldest-first' | 'subject' | EventSubject;
type Values = { teamId: string; subjectId: string; limit: number; offset: number; end: number };
/** A page: its events' JSON, joined by commas (null: there are none), and how many they are. */
type Row = { bodies: string | null; count: number };

/** Number of a team's events, of all kinds, in which a page of one kind is looked for before an index has to help. */
const nearby = 500;

/** The types that events of a kind can have, each once. */
function typesOf(types: readonly EventType[], kind: EventSubject | undefined): EventType[] {
  return [...new Set(types)].filter(type => kind === undefined || type.startsWith(`${kind}.`));
}

const directionOf = (words: readonly Word[]) => (words.includes('oldest-first') ? 'asc' : 'desc');
const kindIn = (words: readonly Word[]) => eventSubjects.find(kind => words.includes(kind));

const pageOf = prepared<Values, Row, Word>((db, parameter, words) => {
  const kind = kindIn(words);
  if (words.includes('subject')) return pageWithin(db, ofSubject(db, parameter, kind), parameter, words);
  if (kind !== undefined) return ofTypes(db, parameter, typesOf(eventTypes, kind), words);
  return pageWithin(db, db.selectFrom('events').where('team_id', '=', parameter('teamId')), parameter, words);
});

/**
 * The part of a kind's page that is among a team's first events, or its last: most events are of one kind, so the page
 * is seldom short. If it is, more of it may lie further on.
 */
const nearbyPage = prepared<Values, Row, Word>((db, parameter, words) => {
  const near = db
    .selectFrom('events')
    .select(['sequence', 'subject_kind', 'body_json'])
    .where('team_id', '=', parameter('teamId'))
    .orderBy('sequence', directionOf(words))
    .limit(nearby);
  const page = db
    .selectFrom(near.as('near'))
    .select('body_json')
    .where('subject_kind', '=', kindIn(words) ?? null)
    .orderBy('sequence', directionOf(words))
    .limit(parameter('limit'))
    .offset(parameter('offset'));
  return joined(db, page);
});

async function chosen(db: Db, values: Values, types: EventType[], words: readonly Word[]): Promise<Row[]> {
  if (types.length === 0) return [];
  const literal: ParameterOf<Values> = name => sql`${values[name]}`;
  if (!words.includes('subject')) return ofTypes(db, literal, types, words).execute();
  return pageWithin(db, ofSubject(db, literal, kindIn(words)).where('type', 'in', types), literal, words).execute();
}

/**
 * Reads, by an index, no more events of each type than the page ends with: other types, which are most of a team's
 * events, need not be passed over.
 */
function ofTypes(db: Db, parameter: ParameterOf<Values>, types: readonly EventType[], words: readonly Word[]) {
  const direction = directionOf(words);
  const [first, ...others] = types.map(type =>
    db
      .selectFrom(
        db
          .selectFrom('events')
          .select('sequence')
          .where('team_id', '=', parameter('teamId'))
          .where('type', '=', type)
          .orderBy('sequence', direction)
          .limit(parameter('end'))
          .as('of_type'),
      )
      .select('sequence'),
  );
  assert(first, 'there is a type to look for');
  const all = others.reduce((some, more) => some.unionAll(more), first);
  const place = db.selectFrom(all.as('found')).select('sequence').orderBy('sequence', direction);
  const page = db
    .selectFrom('events')
    .select('body_json')
    .where('sequence', 'in', place.limit(parameter('limit')).offset(parameter('offset')))
    .orderBy('sequence', direction)
    .limit(parameter('limit'));
  return joined(db, page);
}

/**
 * One subject has few events: they are found by its kind, or all kinds, and its ID. They are a subquery of their own:
 * else SQLite would rather read all of a team's events, which it need not sort.
 */
function ofSubject(db: Db, parameter: ParameterOf<Values>, kind: EventSubject | undefined) {
  const own = db
    .selectFrom('events')
    .select('sequence')
    .where('subject_kind', 'in', kind === undefined ? eventSubjects : [kind])
    .where('subject_id', '=', parameter('subjectId'));
  return db.selectFrom('events').where('team_id', '=', parameter('teamId')).where('sequence', 'in', own);
}

function pageWithin(
  db: Db,
  query: SelectQueryBuilder<Tables, 'events', object>,
  parameter: ParameterOf<Values>,
  words: readonly Word[],
) {
  const page = query
    .select('body_json')
    .orderBy('sequence', directionOf(words))
    .limit(parameter('limit'))
    .offset(parameter('offset'));
  return joined(db, page);
}

/**
 * A page in one row: a database joins texts faster than it hands over a row for each. It joins them in the order of the
 * subquery, which needs a limit, as PostgreSQL may let several processes join the rows of one without. (An order within
 * `string_agg` would make SQLite sort the texts themselves.)
 */
function joined(db: Db, page: SelectQueryBuilder<Tables, never, { body_json: string }>) {
  return db
    .selectFrom(page.as('page'))
    .select(({ fn }) => [
      sql<string | null>`string_agg(body_json, ',')`.as('bodies'),
      fn.countAll<number>().as('count'),
    ]);
}

/** Removes events from before `beforeUs`, and each team's oldest beyond its maximum, with their deliveries. */
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
