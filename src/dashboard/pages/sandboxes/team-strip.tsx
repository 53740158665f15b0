import type { TeamMetric } from '../../../protocol/api/metrics.ts';
import type { TeamUse } from '../../../protocol/api/team.ts';
import { useRead } from '../../api/hooks.ts';
import { useTeam } from '../../api/session.tsx';
import { formatCount } from '../../format.ts';
import { Meter, useTimer } from '../../parts/bits.tsx';

const everyMs = 5_000;
/** The start rate covers this many minutes, without the present one, which has not ended. */
const rateMinutes = 5;

/** Starts per minute in the last whole minutes before `nowSeconds`; null if none was counted. */
export function startsPerMinute(samples: readonly TeamMetric[], nowSeconds: number): number | null {
  const minute = Math.floor(nowSeconds / 60) * 60;
  const last = samples.filter(({ timestampUnix: at }) => at < minute && at >= minute - rateMinutes * 60);
  if (last.length === 0) return null;
  return last.reduce((sum, { sandboxStartRate }) => sum + sandboxStartRate * 60, 0) / rateMinutes;
}

/** What a team runs compared with its limit, and how fast it starts sandboxes. */
export function TeamStrip() {
  const { teamID } = useTeam();
  const minute = Math.floor(useTimer(everyMs) / 60_000) * 60;
  const { data: use } = useRead<TeamUse>('/limits', { every: everyMs });
  const { data: samples } = useRead<TeamMetric[]>(`/teams/${teamID}/metrics`, {
    query: { start: minute - rateMinutes * 60, end: minute },
    every: 60_000,
  });
  const rate = startsPerMinute(samples ?? [], minute);
  const running = use?.taken.concurrentSandboxes;
  const limit = use?.limits.concurrentSandboxes;
  return (
    <div className="stats" role="group" aria-label="The team now">
      <div>
        <strong>
          {count(running)} <span className="of">of {count(limit)}</span>
        </strong>
        <span className="row" style={{ gap: 8, flexWrap: 'nowrap' }}>
          <span className="muted">running</span>
          <Meter share={(running ?? 0) / Math.max(1, limit ?? 1)} label={`${running} of ${limit} may run at once`} />
        </span>
      </div>
      <div>
        <strong>{count(use && use.taken.sandboxes - use.taken.concurrentSandboxes)}</strong>
        <span className="muted">paused</span>
      </div>
      <div title={`Sandboxes created a minute, over the last ${rateMinutes} minutes`}>
        <strong>{rate === null ? '0' : rate.toFixed(rate < 10 ? 1 : 0)}</strong>
        <span className="muted">starts a minute</span>
      </div>
      <div>
        <strong>{count(use?.taken.concurrentBuilds)}</strong>
        <span className="muted">builds under way</span>
      </div>
    </div>
  );
}

const count = (value: number | undefined) => (value === undefined ? '–' : formatCount(value));
