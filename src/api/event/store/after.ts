import type { Db } from '../../database/db.ts';

/** An event as it is stored: its number and its JSON text. */
export type EventRow = { sequence: number; body: string };

/** At most `limit` events of a team behind `sequence`, in the order of their sequences. */
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
