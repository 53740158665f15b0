import { sql } from 'kysely';
import type { Db } from './db.ts';

const place = 1;

/** The time on the database's clock, and the correction to add since it was found to be wrong. */
export type ClockReading = {
  nowUs: number;
  correctionUs: number;
  /** Grows with each correction. */
  revision: number;
};

/** Reads PostgreSQL's clock. */
export async function readClock(db: Db): Promise<ClockReading> {
  const { rows } = await sql<{ now_us: number; correction_us: number; revision: number }>`
    select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now_us,
      coalesce(correction_us, 0) as correction_us, coalesce(revision, 0) as revision
    from (select 1) as one left join database_clock on place = ${place}
  `.execute(db);
  const [row] = rows;
  if (!row) throw new Error('invariant broken: a database does not say what time it is');
  return { nowUs: row.now_us, correctionUs: row.correction_us, revision: row.revision };
}

/** Sets the correction to add to the clock from now on. False: another process has changed it since it was read. */
export async function correctClock(db: Db, read: ClockReading, correctionUs: number): Promise<boolean> {
  const values = { place, correction_us: Math.round(correctionUs), revision: read.revision + 1 };
  const { place: _, ...changed } = values;
  const row = await db
    .insertInto('database_clock')
    .values(values)
    .onConflict(conflict =>
      conflict.column('place').doUpdateSet(changed).where('database_clock.revision', '=', read.revision),
    )
    .returning('revision')
    .executeTakeFirst();
  return row !== undefined;
}

/** How long each process that shares the database counts as alive, by its ID. */
export async function aliveUntil(db: Db): Promise<Map<string, number>> {
  const rows = await db.selectFrom('replicas').select(['replica_id', 'until_us']).execute();
  return new Map(rows.map(row => [row.replica_id, row.until_us]));
}
