import { useNavigate, useSearch } from '@tanstack/react-router';
import type { SandboxMetric } from '../../../protocol/api/metrics.ts';
import { useRead } from '../../api/hooks.ts';
import { formatBytes } from '../../format.ts';
import { Empty, useTimer } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Plot } from '../../parts/plot.tsx';
import type { Mark } from '../../parts/plot.tsx';
import { marksOf } from './marks.ts';
import { MarkList } from './mark-list.tsx';
import { ranges } from './metrics-search.ts';
import type { MetricsSearch, Range } from './metrics-search.ts';
import { useSandbox } from './sandbox.tsx';

const everyMs = 5_000;

const percent = (value: number) => `${Math.round(value)} %`;

/** Processor, memory and disk of a sandbox over time. */
export function Metrics() {
  const { sandboxId, events } = useSandbox();
  const { range = '15m' }: MetricsSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  // The range moves on by itself, also while nothing comes of it.
  const nowSeconds = Math.floor(useTimer(everyMs) / everyMs) * (everyMs / 1000);
  const marks = marksOf(events, nowSeconds - ranges[range]);
  const metrics = useRead<SandboxMetric[]>(`/sandboxes/${encodeURIComponent(sandboxId)}/metrics`, {
    query: { start: nowSeconds - ranges[range], end: nowSeconds },
    every: everyMs,
  });
  return (
    <div className="stack">
      <div className="segments" role="group" aria-label="Range" style={{ justifySelf: 'start' }}>
        {(Object.keys(ranges) as Range[]).map(name => (
          <button
            key={name}
            type="button"
            aria-pressed={name === range}
            onClick={() => void navigate({ to: '.', search: { range: name }, replace: true })}
          >
            {name}
          </button>
        ))}
      </div>
      <Loaded of={metrics}>
        {samples =>
          samples.length === 0 ? (
            <div className="table-wrap">
              <Empty title="Nothing was measured in this range" />
            </div>
          ) : (
            <Plots samples={samples} marks={marks} />
          )
        }
      </Loaded>
      {marks.length > 0 && <MarkList marks={marks} />}
    </div>
  );
}

function Plots({ samples, marks }: { samples: SandboxMetric[]; marks: Mark[] }) {
  const times = samples.map(({ timestampUnix }) => timestampUnix);
  const series = (name: string, of: (sample: SandboxMetric) => number, format: (value: number) => string) => ({
    name,
    values: samples.map(of),
    format,
  });
  const last = samples.at(-1);
  return (
    <div className="columns">
      <Card title="Processor">
        <div className="body">
          <Plot
            title="Processor"
            times={times}
            max={100}
            marks={marks}
            series={[series('CPU', one => one.cpuUsedPct, percent)]}
          />
        </div>
      </Card>
      <Card title="Memory">
        <div className="body">
          <Plot
            title="Memory"
            binary
            marks={marks}
            times={times}
            max={last?.memTotal}
            series={[
              series('Used', one => one.memUsed, formatBytes),
              series('Cache', one => one.memCache, formatBytes),
            ]}
          />
        </div>
      </Card>
      <Card title="Disk">
        <div className="body">
          <Plot
            title="Disk"
            binary
            marks={marks}
            times={times}
            max={last?.diskTotal}
            series={[series('Used', one => one.diskUsed, formatBytes)]}
          />
        </div>
      </Card>
    </div>
  );
}
