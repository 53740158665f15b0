import type { Db } from '../../database/db.ts';

/** An event as it is stored: its number and its JSON text. */
export type EventRow = { sequence: number; body: string };

/** At most `limit` events of a team after `sequence`, in the order of their sequences. */
export async function eventsAfter(db: Db, teamId: string, sequence: number, limit: number): Promise<EventRow[]> {
  const rows = await db
    .selectFrom('events')
    .select(['sequence', 'body_json'])
    .where('team_id', '=', teamId)
    .where('sequence', '>', sequence)
    .orderBy('sequence')
    .limit(limit)
    .execute();
  return rows.map(row => ({ sequence: Number(row.sequence), body: row.body_json }));
}

/** The sequence of a team's newest event; 0 where it has none. */
export async function newestSequence(db: Db, teamId: string): Promise<number> {
  const row = await db
    .selectFrom('events')
    .select(({ fn }) => fn.max('sequence').as('newest'))
    .where('team_id', '=', teamId)
    .executeTakeFirst();
  return Number(row?.newest ?? 0);
}

/** The sequences of a team's events after `sequence`, up to `upTo`, in order. */
export async function sequencesBetween(db: Db, teamId: string, sequence: number, upTo: number): Promise<number[]> {
  const rows = await db
    .selectFrom('events')
    .select('sequence')
    .where('team_id', '=', teamId)
    .where('sequence', '>', sequence)
    .where('sequence', '<=', upTo)
    .orderBy('sequence')
    .execute();
  return rows.map(row => Number(row.sequence));
}

/** A team's events with these sequences, in order. */
export async function eventsAt(db: Db, teamId: string, sequences: readonly number[]): Promise<EventRow[]> {
  const rows = await db
    .selectFrom('events')
    .select(['sequence', 'body_json'])
    .where('team_id', '=', teamId)
    .where('sequence', 'in', sequences)
    .orderBy('sequence')
    .execute();
  return rows.map(row => ({ sequence: Number(row.sequence), body: row.body_json }));
}

/**
 * The sequence of a team's newest event that is at least `longUs` older than its newest one up to `sequence`; 0 where
 * it has none.
 */
export async function longBefore(db: Db, teamId: string, sequence: number, longUs: number): Promise<number> {
  const newest = db
    .selectFrom('events')
    .select(['sequence', 'at_us'])
    .where('team_id', '=', teamId)
    .where('sequence', '<=', sequence)
    .orderBy('sequence', 'desc')
    .limit(1);
  const last = await newest.executeTakeFirst();
  if (!last) return 0;
  const row = await newest.where('at_us', '<', Number(last.at_us) - longUs).executeTakeFirst();
  return Number(row?.sequence ?? 0);
}
