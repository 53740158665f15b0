import { systemClock } from '../../../base/clock.ts';
import type { SteadyClock } from '../../../base/clock.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Db } from '../../database/db.ts';
import { type ClockReading, correctClock, readClock } from '../../database/clock.ts';

/** A clock that differs by so much from what it was expected to show was set, or goes wrong. */
const wrongMsMin = 1_000;
/** For how long a clock is held to what it showed: it may go a sixth of a percent wrong in that time. */
const heldMs = 600_000;

/** By how much more time has passed on machines than here. See `PassedTime`. */
type Ahead = { begin(): void; ahead(): Promise<number | null | undefined> };

/** The database's time, which is the same for all who share it. */
type DatabaseClock = SteadyClock & {
  /**
   * Asks the database again: its clock and this machine's drift apart. Where it was set, and machines say that no more
   * time has passed than here, all go on as if it had not been; while none of them says anything, this process goes on
   * as before.
   */
  sync(machines: Ahead | null, log: Log): Promise<void>;
};

/** Where the time comes from. */
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
 * A clock that shows PostgreSQL's time: asked once, carried on by a clock that nobody can set. Off by half of what one
 * question takes at most. A machine whose own clock is wrong ends no sandbox early, nor does a database whose clock is
 * set while machines are there.
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
        // Where another process was faster, the next look has what it has said.
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

/** Else this process has stood still with its clock, or there is no machine: the database is right. */
function agreesWithThis(aheadMs: number | undefined, wrongMs: number): boolean {
  return aheadMs !== undefined && Math.abs(aheadMs) < Math.abs(aheadMs - wrongMs);
}

async function ask(source: ClockSource, steadyMs: () => number): Promise<{ read: ClockReading; offsetMs: number }> {
  const askedMs = steadyMs();
  const read = await source.read();
  const answeredMs = steadyMs();
  return { read, offsetMs: (read.nowUs + read.correctionUs) / 1000 - (askedMs + answeredMs) / 2 };
}
