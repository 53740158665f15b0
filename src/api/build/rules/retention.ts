import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import { pruneBuildLogs } from '../store/retention.ts';

/** What is kept of builds. */
export const buildRetention = {
  /** A build that is registered and not started for so long has failed. */
  waitingHours: 24,
  /** For how long a build that failed is kept. */
  failedDays: 30,
  /** Failed builds of one team; beyond, the oldest go. */
  failedPerTeam: 1_000,
  /** Ready builds, or snapshots, of one template that no tag selects and no sandbox was made from. */
  supersededPerTemplate: 100,
  /** For how long the log of a build that has ended is kept. */
  logDays: 30,
  /** Builds of one team whose logs are kept; beyond, the oldest logs go. */
  logsPerTeam: 200,
};

/** An hour in the store's unit. */
export const microsPerHour = 3600 * microsPerSecond;

/** Forgets the logs of a team's builds beyond those that are kept. */
export async function pruneLogs(
  { clock, db }: { clock: Clock; db: Db },
  teamId: string,
  { logDays, logsPerTeam }: Pick<typeof buildRetention, 'logDays' | 'logsPerTeam'> = buildRetention,
): Promise<void> {
  await pruneBuildLogs(db, teamId, { beforeUs: clock() - logDays * 24 * microsPerHour, newest: logsPerTeam });
}
