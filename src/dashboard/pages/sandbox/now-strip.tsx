import type { SandboxMetric } from '../../../protocol/api/metrics.ts';
import { formatBytes } from '../../format.ts';
import { Meter } from '../../parts/bits.tsx';
import { useLatestMetrics } from '../sandboxes/latest-metrics.ts';

/** What a running sandbox uses now, compared with its limits. */
export function NowStrip({ sandboxId }: { sandboxId: string }) {
  const now: SandboxMetric | undefined = useLatestMetrics([sandboxId])[sandboxId];
  return (
    <div className="stats" role="group" aria-label="What it uses now">
      <Use name="CPU" value={now && `${now.cpuUsedPct.toFixed(0)} %`} of={now && `${now.cpuCount} CPU`} />
      <Use name="memory" {...shareOf(now?.memUsed, now?.memTotal)} />
      <Use name="disk" {...shareOf(now?.diskUsed, now?.diskTotal)} />
    </div>
  );
}

type UseProps = { name: string; value: string | undefined; of?: string | undefined; share?: number | undefined };

function Use({ name, value, of, share }: UseProps) {
  return (
    <div>
      <strong>
        {value ?? '–'} {of !== undefined && <span className="of">of {of}</span>}
      </strong>
      <span className="row" style={{ gap: 8, flexWrap: 'nowrap' }}>
        <span className="muted">{name}</span>
        {share !== undefined && <Meter share={share} label={`${value} of ${of} ${name}`} />}
      </span>
    </div>
  );
}

function shareOf(used: number | undefined, total: number | undefined): Omit<UseProps, 'name'> {
  if (used === undefined || total === undefined) return { value: undefined };
  return { value: formatBytes(used), of: formatBytes(total), share: used / Math.max(1, total) };
}
