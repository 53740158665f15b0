import { microsPerSecond } from '../app/clock.ts';
import type { App } from '../app/context.ts';
import { prunePastSandboxes } from '../store/past-sandbox.ts';
import { runningCounts } from '../store/sandbox-counts.ts';
import { noteTeams, pruneTeamMetrics, teamMetricSeconds } from '../store/team-metrics.ts';
import type { TeamSighting } from '../store/team-metrics.ts';

export const teamMetricsIntervalMs = 5_000;
export const metricsPruneIntervalMs = 3_600_000;

/** How long is kept what teams have run, and whose the sandboxes were that are gone. */
export type MetricsRetention = { teamDays: number; pastSandboxHours: number };

/** Notes how many sandboxes each team runs and has started. A team is written down when there is something new of it. */
export function teamWatch(app: App): () => Promise<void> {
  let atSeconds = 0;
  /** The last sighting of each team that ran something then, or that was written down in this minute. */
  let seen = new Map<string, TeamSighting>();
  return async () => {
    const nowSeconds = Math.floor(app.clock() / microsPerSecond);
    const minute = nowSeconds - (nowSeconds % teamMetricSeconds);
    const running = await runningCounts(app.store.db);
    const starts = app.startCounts.take();
    const teams = new Set([...running.keys(), ...starts.keys(), ...seen.keys()]);
    const sightings = [...teams].map(teamId => ({ teamId, running: running.get(teamId) ?? 0, starts: starts.get(teamId) ?? 0 }));
    const news = sightings.filter(sighting => minute !== atSeconds || sighting.starts > 0 || sighting.running !== seen.get(sighting.teamId)?.running);
    try {
      await noteTeams(app.store.db, minute, news);
    } catch (error) {
      for (const [teamId, count] of starts) app.startCounts.note(teamId, count);
      throw error;
    }
    atSeconds = minute;
    seen = new Map(sightings.filter(sighting => sighting.running > 0).map(sighting => [sighting.teamId, sighting]));
  };
}

/** Forgets what is older than is kept. */
export async function pruneMetrics(app: App, { teamDays, pastSandboxHours }: MetricsRetention): Promise<void> {
  const nowUs = app.clock();
  await pruneTeamMetrics(app.store.db, Math.floor(nowUs / microsPerSecond) - teamDays * 24 * 3600);
  await prunePastSandboxes(app.store.db, nowUs - pastSandboxHours * 3600 * microsPerSecond);
}
