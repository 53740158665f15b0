import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import { pruneBuildLogs } from '../store/retention.ts';

/** How much is kept of builds. */
export const buildRetention = {
  /** A build that is registered but not started for this long has failed. */
  waitingHours: 24,
  /** How long a failed build is kept. */
  failedDays: 30,
  /** Failed builds of one team; beyond that, the oldest are removed. */
  failedPerTeam: 1_000,
  /** Ready builds, or snapshots, of one template that no tag selects and no sandbox was made from. */
  supersededPerTemplate: 100,
  /** How long the log of an ended build is kept. */
  logDays: 30,
  /** Builds of one team whose logs are kept; beyond that, the oldest logs are removed. */
  logsPerTeam: 200,
};

/** An hour in the store's unit of time. */
export const microsPerHour = 3600 * microsPerSecond;

/** Forgets the logs of a team's builds beyond those to keep. */
export async function pruneLogs(
  { clock, db }: { clock: Clock; db: Db },
  teamId: string,
  { logDays, logsPerTeam }: Pick<typeof buildRetention, 'logDays' | 'logsPerTeam'> = buildRetention,
): Promise<void> {
  await pruneBuildLogs(db, teamId, { beforeUs: clock() - logDays * 24 * microsPerHour, newest: logsPerTeam });
}
