import { useNavigate, useSearch } from '@tanstack/react-router';
import { Download } from 'lucide-react';
import type { SandboxMetric } from '../../../../protocol/api/metrics.ts';
import { useRead } from '../../../api/hooks.ts';
import { formatBytes } from '../../../format.ts';
import { Empty, useTimer } from '../../../parts/bits.tsx';
import { keepText } from '../../../parts/keep-text.ts';
import { Loaded } from '../../../parts/loaded.tsx';
import { Card } from '../../../parts/page.tsx';
import { ExactTime } from '../../../parts/zone.tsx';
import { Plot } from '../../../parts/plot.tsx';
import type { Mark } from '../../../parts/plot.tsx';
import { marksOf } from './marks.ts';
import { MarkList } from './mark-list.tsx';
import { moves, ranges, spanOf } from './metrics-search.ts';
import type { MetricsSearch, Range, Span } from './metrics-search.ts';
import { metricsCsv } from './csv.ts';
import { useSandbox } from '../sandbox.tsx';

const everyMs = 5_000;

const percent = (value: number) => `${Math.round(value)} %`;

/** Processor, memory and disk of a sandbox over time. */
export function Metrics() {
  const { sandboxId, events } = useSandbox();
  const { range = '15m', from, to }: MetricsSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  // The range moves on by itself, even while no data comes.
  const nowSeconds = Math.floor(useTimer(everyMs) / everyMs) * (everyMs / 1000);
  const isFixed = from !== undefined && to !== undefined;
  const span = isFixed ? { from, to } : { from: nowSeconds - ranges[range], to: nowSeconds };
  const marks = marksOf(events, span.from).filter(({ at }) => at <= span.to);
  const metrics = useRead<SandboxMetric[]>(`/sandboxes/${encodeURIComponent(sandboxId)}/metrics`, {
    query: { start: span.from, end: span.to },
    every: isFixed ? false : everyMs,
  });
  const look = (next: Span) => void navigate({ to: '.', search: { range, ...next } });
  return (
    <div className="stack">
      <div className="row">
        <div className="segments" role="group" aria-label="Range">
          {(Object.keys(ranges) as Range[]).map(name => (
            <button
              key={name}
              type="button"
              aria-pressed={!isFixed && name === range}
              onClick={() => void navigate({ to: '.', search: { range: name }, replace: true })}
            >
              {name}
            </button>
          ))}
        </div>
        <div className="row" role="group" aria-label="Move">
          {Object.entries(moves).map(([name, move]) => (
            <button key={name} type="button" className="button" onClick={() => look(move(span))}>
              {name}
            </button>
          ))}
        </div>
        {isFixed && (
          <span className="muted small">
            <ExactTime at={from * 1000} /> to <ExactTime at={to * 1000} />
          </span>
        )}
        <span className="grow" />
        <button
          type="button"
          className="button"
          disabled={!metrics.data?.length}
          onClick={() => keepText(`${sandboxId}-metrics.csv`, metricsCsv(metrics.data ?? []))}
        >
          <Download size={14} /> CSV
        </button>
      </div>
      <Loaded of={metrics}>
        {samples =>
          samples.length === 0 ? (
            <div className="table-wrap">
              <Empty title="Nothing was measured in this range" />
            </div>
          ) : (
            <Plots samples={samples} marks={marks} onBrush={(start, end) => look(spanOf(start, end))} />
          )
        }
      </Loaded>
      {marks.length > 0 && <MarkList marks={marks} />}
    </div>
  );
}

type PlotsProps = { samples: SandboxMetric[]; marks: Mark[]; onBrush: (from: number, to: number) => void };

function Plots({ samples, marks, onBrush }: PlotsProps) {
  const times = samples.map(({ timestampUnix }) => timestampUnix);
  const series = (name: string, of: (sample: SandboxMetric) => number, format: (value: number) => string) => ({
    name,
    values: samples.map(of),
    format,
  });
  const last = samples.at(-1);
  const shared = { times, marks, onBrush };
  return (
    <div className="columns">
      <Card title="Processor">
        <div className="body">
          <Plot {...shared} title="Processor" max={100} series={[series('CPU', one => one.cpuUsedPct, percent)]} />
        </div>
      </Card>
      <Card title="Memory">
        <div className="body">
          <Plot
            {...shared}
            title="Memory"
            binary
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
            {...shared}
            title="Disk"
            binary
            max={last?.diskTotal}
            series={[series('Used', one => one.diskUsed, formatBytes)]}
          />
        </div>
      </Card>
    </div>
  );
}
