import { microsPerSecond } from '../../../base/clock.ts';
import { pruneHomes } from '../../sandbox/store/past.ts';
import { histories, pruneHistory } from '../../event/store/history.ts';
import { runningCounts } from '../../sandbox/store/counts.ts';
import { recordTeams, pruneTeamMetrics, teamMetricSeconds } from '../store/team.ts';
import type { TeamSighting } from '../store/team.ts';
import { countTemplates, pruneTemplateHours } from '../store/template.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { StartCounts } from '../start-counts.ts';

/** How often this runs, milliseconds. */
export const teamMetricsIntervalMs = 5_000;
/** How often this runs, milliseconds. */
export const metricsPruneIntervalMs = 10 * 60_000;
/** Past sandboxes of one team whose samples and logs can be read; beyond that, the oldest are forgotten. */
const pastSandboxesPerTeamMax = 100_000;

/** How long metrics of teams, and the owners of past sandboxes, are kept. */
export type MetricsRetention = { teamDays: number; pastSandboxHours: number };

/**
 * Records how many sandboxes each team runs and has started, and once a minute of which templates. A team's row is
 * written when there is something new.
 */
export function teamWatch({
  clock,
  db,
  startCounts,
}: {
  clock: Clock;
  db: Db;
  startCounts: StartCounts;
}): () => Promise<void> {
  let atSeconds = 0;
  /** The last sighting of each team that was running something, or that was written in this minute. */
  let seen = new Map<string, TeamSighting>();
  return async () => {
    const nowSeconds = Math.floor(clock() / microsPerSecond);
    const minute = nowSeconds - (nowSeconds % teamMetricSeconds);
    const running = await runningCounts(db);
    const starts = startCounts.take();
    const teams = new Set([...running.keys(), ...starts.keys(), ...seen.keys()]);
    const sightings = [...teams].map(teamId => ({
      teamId,
      running: running.get(teamId) ?? 0,
      starts: starts.get(teamId) ?? 0,
    }));
    const news = sightings.filter(
      sighting =>
        minute !== atSeconds || sighting.starts > 0 || sighting.running !== seen.get(sighting.teamId)?.running,
    );
    try {
      await recordTeams(db, minute, news);
    } catch (error) {
      for (const [teamId, count] of starts) startCounts.count(teamId, count);
      throw error;
    }
    if (minute !== atSeconds) await countTemplates(db, minute);
    atSeconds = minute;
    seen = new Map(sightings.filter(sighting => sighting.running > 0).map(sighting => [sighting.teamId, sighting]));
  };
}

/** Removes what is older than the retention allows, and a team's past sandboxes beyond `perTeamMax`. */
export async function pruneMetrics(
  { clock, db }: { clock: Clock; db: Db },
  { teamDays, pastSandboxHours }: MetricsRetention,
  perTeamMax: number = pastSandboxesPerTeamMax,
): Promise<void> {
  const nowUs = clock();
  const oldestSeconds = Math.floor(nowUs / microsPerSecond) - teamDays * 24 * 3600;
  await pruneTeamMetrics(db, oldestSeconds);
  await pruneTemplateHours(db, oldestSeconds);
  await pruneHistory(db, histories.pastSandboxes, {
    beforeUs: nowUs - pastSandboxHours * 3600 * microsPerSecond,
    perTeamMax,
  });
  await pruneHomes(db, nowUs - pastSandboxHours * 3600 * microsPerSecond);
}
