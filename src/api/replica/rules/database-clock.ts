import { sql } from 'kysely';
import { systemClock } from '../../../base/clock.ts';
import type { SteadyClock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';

/** The database's time, which is the same for all who share it. */
type DatabaseClock = SteadyClock & {
  /** Asks the database again: its clock and this machine's drift apart. */
  sync(): Promise<void>;
};

/**
 * A clock that shows PostgreSQL's time: asked once, carried on by a clock that nobody can set. Off by half of what one
 * question takes at most. A machine whose own clock is wrong ends no sandbox early.
 */
export async function databaseClock(db: Db, steadyMs: () => number = () => performance.now()): Promise<DatabaseClock> {
  let offsetMs = await offset(db, steadyMs);
  return {
    clock: systemClock(() => offsetMs + steadyMs()),
    steppedUs: () => 0,
    follow: () => {},
    async sync() {
      offsetMs = await offset(db, steadyMs);
    },
  };
}

async function offset(db: Db, steadyMs: () => number): Promise<number> {
  const askedMs = steadyMs();
  const { rows } = await sql<{ now_us: number }>`
    select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now_us
  `.execute(db);
  const answeredMs = steadyMs();
  return Number(rows[0]?.now_us) / 1000 - (askedMs + answeredMs) / 2;
}
