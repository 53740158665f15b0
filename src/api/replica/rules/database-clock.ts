import { systemClock } from '../../../base/clock.ts';
import type { SteadyClock } from '../../../base/clock.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Db } from '../../database/db.ts';
import { type ClockReading, correctClock, readClock } from '../../database/clock.ts';

/** A clock that differs by this much from what was expected was set, or runs wrong. */
const wrongMsMin = 1_000;
/** How long a clock is compared with its earlier reading: it may drift by a sixth of a percent in that time. */
const heldMs = 600_000;

/** How much more time has passed on machines than here. See `PassedTime`. */
type Ahead = { begin(): void; ahead(): Promise<number | null | undefined> };

/** The database's time, which is the same for all who share it. */
type DatabaseClock = SteadyClock & {
  /**
   * Reads the database's clock again, as it and this machine's drift apart. If it was set, while machines say that no
   * more time has passed than here, all processes go on as if it had not been; if no machine reports, this process goes
   * on as before.
   */
  sync(machines: Ahead | null, log: Log): Promise<void>;
};

/** The source of the time. */
type ClockSource = {
  read(): Promise<ClockReading>;
  correct(read: ClockReading, correctionUs: number): Promise<boolean>;
};

/** The clock of PostgreSQL. */
export const clockOf = (db: Db): ClockSource => ({
  read: () => readClock(db),
  correct: (read, correctionUs) => correctClock(db, read, correctionUs),
});

/**
 * A clock that shows PostgreSQL's time: read once, then carried on by a clock that nobody can set. It is wrong by at
 * most half the duration of one query. Neither a wrong clock of the machine nor a changed clock of the database, while
 * machines are there, ends a sandbox early.
 */
export async function databaseClock(
  source: ClockSource,
  steadyMs: () => number = () => performance.now(),
): Promise<DatabaseClock> {
  const first = await ask(source, steadyMs);
  const state = { offsetMs: first.offsetMs, revision: first.read.revision };
  let held = { offsetMs: first.offsetMs, sinceMs: steadyMs() };
  return {
    clock: systemClock(() => state.offsetMs + steadyMs()),
    steppedUs: () => 0,
    follow: () => {},
    async sync(machines, log) {
      const { read, offsetMs } = await ask(source, steadyMs);
      const wrongMs = offsetMs - held.offsetMs;
      const isAsExpected = read.revision !== state.revision || Math.abs(wrongMs) < wrongMsMin;
      const aheadMs = isAsExpected ? undefined : await machines?.ahead();
      if (aheadMs === null) return;
      if (agreesWithThis(aheadMs, wrongMs)) {
        const byMs = offsetMs - state.offsetMs;
        // Where another process was faster, the next look finds its correction.
        if (!(await source.correct(read, read.correctionUs - byMs * 1000))) return;
        state.revision = read.revision + 1;
        return log.error("the database's clock was set or goes wrong: all go on as if it was right", {
          seconds: byMs / 1000,
        });
      }
      const isHeld = isAsExpected && read.revision === state.revision && steadyMs() - held.sinceMs < heldMs;
      Object.assign(state, { offsetMs, revision: read.revision });
      if (isHeld) return;
      held = { offsetMs, sinceMs: steadyMs() };
      machines?.begin();
    },
  };
}

/**
 * Otherwise this process has stood still together with its clock, or there is no machine: then the database is right.
 */
function agreesWithThis(aheadMs: number | undefined, wrongMs: number): boolean {
  return aheadMs !== undefined && Math.abs(aheadMs) < Math.abs(aheadMs - wrongMs);
}

async function ask(source: ClockSource, steadyMs: () => number): Promise<{ read: ClockReading; offsetMs: number }> {
  const askedMs = steadyMs();
  const read = await source.read();
  const answeredMs = steadyMs();
  return { read, offsetMs: (read.nowUs + read.correctionUs) / 1000 - (askedMs + answeredMs) / 2 };
}
