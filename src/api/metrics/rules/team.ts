import { AtollError } from '../../../base/error.ts';
import type { TeamMetricName } from '../../../protocol/api/metrics.ts';
import { highestOfTeam, latestBefore, teamMetricSeconds, teamSpans } from '../store/team.ts';
import type { TeamRange, TeamSpan } from '../store/team.ts';
import { mostUsedTemplates } from '../store/template.ts';
import type { TemplateUse } from '../store/template.ts';
import { namesOf } from '../../template/store/list.ts';
import type { TemplateName } from '../../template/record.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { checkRange } from './sandbox.ts';
import type { TimeRange } from './sandbox.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';

/** The most points of a range; the spans get as long as that requires. */
const teamPointsMax = 1_000;
const defaultRangeSeconds = 7 * 24 * 3600;
/** The most templates to report, starting with the most used. */
const templatesMax = 100;

/** What a team ran in a span of time: the most at a time, starts per second, and total running time. */
type TeamPoint = { atSeconds: number; concurrentSandboxes: number; sandboxStartRate: number; sandboxSeconds: number };

/**
 * How many sandboxes a team ran at a time and started per second, oldest first, by default for the last week. Leaves
 * out the time before its first sandbox, and times when the platform did not run. Throws `forbidden` for another team,
 * `invalid`.
 */
export async function readTeamMetrics(
  { clock, db }: { clock: Clock; db: Db },
  team: TeamRecord,
  teamId: string,
  asked: TimeRange,
): Promise<TeamPoint[]> {
  checkOwn(team, teamId);
  const range = rangeOf(clock, asked);
  if (range === null) return [];
  const seconds = range.endSeconds - range.startSeconds + 1;
  const stepSeconds = Math.ceil(seconds / teamPointsMax / teamMetricSeconds) * teamMetricSeconds;
  const spans = await teamSpans(db, teamId, range, stepSeconds);
  const before = await latestBefore(db, teamId, range.startSeconds);
  return fillIdle(spans, before, range, stepSeconds).map(span => ({
    atSeconds: span.startSeconds,
    concurrentSandboxes: span.concurrent,
    sandboxStartRate: span.starts / stepSeconds,
    sandboxSeconds: span.sandboxSeconds,
  }));
}

/**
 * The highest value in a range, and its time; 0 at the start of a range without values, and now for a range in the
 * future. Throws as `readTeamMetrics`.
 */
export async function readHighestTeamMetric(
  { clock, db }: { clock: Clock; db: Db },
  team: TeamRecord,
  teamId: string,
  metric: TeamMetricName,
  asked: TimeRange,
): Promise<{ atSeconds: number; value: number }> {
  checkOwn(team, teamId);
  const range = rangeOf(clock, asked);
  if (range === null) return { atSeconds: nowSecondsOf(clock), value: 0 };
  const highest = await highestOfTeam(db, teamId, range, metric === 'concurrent_sandboxes' ? 'concurrent' : 'starts');
  const atSeconds = Math.max(highest?.atSeconds ?? 0, range.startSeconds);
  const value = highest?.value ?? 0;
  return { atSeconds, value: metric === 'concurrent_sandboxes' ? value : value / teamMetricSeconds };
}

/** How long sandboxes of each template ran for a team, the longest first. Throws as `readTeamMetrics`. */
export async function readTemplateUse(
  { clock, db }: { clock: Clock; db: Db },
  team: TeamRecord,
  teamId: string,
  asked: TimeRange,
): Promise<(TemplateUse & { names: TemplateName[] })[]> {
  checkOwn(team, teamId);
  const range = rangeOf(clock, asked);
  if (range === null) return [];
  const used = await mostUsedTemplates(db, teamId, range, templatesMax);
  const names = await namesOf(
    db,
    used.map(({ templateId }) => templateId),
  );
  return used.map(use => ({ ...use, names: names.get(use.templateId) ?? [] }));
}

/** Idle minutes have no rows: where the last count is zero, it stays zero until the next row. */
export function fillIdle(
  spans: readonly TeamSpan[],
  before: number | null,
  { startSeconds, endSeconds }: TeamRange,
  stepSeconds: number,
): TeamSpan[] {
  const known = new Map(spans.map(span => [span.startSeconds, span]));
  const filled: TeamSpan[] = [];
  let latest = before;
  for (let at = startSeconds; at <= endSeconds; at += stepSeconds) {
    const span =
      known.get(at) ??
      (latest === 0 ? { startSeconds: at, concurrent: 0, starts: 0, latest: 0, sandboxSeconds: 0 } : undefined);
    if (!span) continue;
    filled.push(span);
    latest = span.latest;
  }
  return filled;
}

function checkOwn(team: TeamRecord, teamId: string): void {
  if (teamId !== team.teamId) throw new AtollError('forbidden', 'The metrics of another team are not yours to read');
}

/** The future has no samples: a range ends now at the latest, and is null where it begins later. */
function rangeOf(clock: Clock, asked: TimeRange): TeamRange | null {
  checkRange(asked);
  const nowSeconds = nowSecondsOf(clock);
  if (asked.start !== undefined && asked.start > nowSeconds) return null;
  const endSeconds = Math.min(asked.end ?? nowSeconds, nowSeconds);
  return { startSeconds: asked.start ?? Math.max(endSeconds - defaultRangeSeconds, 0), endSeconds };
}

const nowSecondsOf = (clock: Clock): number => Math.floor(clock() / microsPerSecond);
