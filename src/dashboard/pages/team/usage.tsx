import { Link, useSearch } from '@tanstack/react-router';
import type { TeamMetric } from '../../../protocol/api/metrics.ts';
import type { TeamUse } from '../../../protocol/api/team.ts';
import { useRead } from '../../api/hooks.ts';
import { useTeam } from '../../api/session.tsx';
import { formatCount } from '../../format.ts';
import { Empty } from '../../parts/bits.tsx';
import { csvOf } from '../../parts/csv.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { Plot } from '../../parts/plot.tsx';
import { CsvButton } from '../../parts/table.tsx';
import { LimitsCard } from './limits-card.tsx';
import { daysUntil } from './trend.ts';
import { usageRanges } from './usage-search.ts';
import type { UsageRange, UsageSearch } from './usage-search.ts';

const everyMs = 30_000;
const hourSeconds = 3_600;

/** How many sandboxes a team runs and starts, and for how long. */
export function Usage() {
  const { teamID } = useTeam();
  const { range = '24h' }: UsageSearch = useSearch({ strict: false });
  const minute = Math.floor(Date.now() / 60_000) * 60;
  const metrics = useRead<TeamMetric[]>(`/teams/${teamID}/metrics`, {
    query: { start: minute - usageRanges[range], end: minute + 60 },
    every: everyMs,
  });
  return (
    <Page title="Usage" about="What the team may, and what it did">
      <LimitsCard />
      <div className="row">
        <div className="segments" role="group" aria-label="Range">
          {(Object.keys(usageRanges) as UsageRange[]).map(name => (
            <Link
              key={name}
              to="/usage"
              search={name === '24h' ? {} : { range: name }}
              replace
              aria-current={name === range ? 'page' : undefined}
              activeOptions={{ exact: true }}
            >
              {name}
            </Link>
          ))}
        </div>
        <span className="grow" />
        {metrics.data && metrics.data.length > 0 && <CsvButton name="usage" of={() => usageCsv(metrics.data)} />}
      </div>
      <Loaded of={metrics}>{samples => (samples.length === 0 ? <Nothing /> : <Used samples={samples} />)}</Loaded>
    </Page>
  );
}

function Nothing() {
  return (
    <div className="table-wrap">
      <Empty title="Nothing was counted yet">
        <p>The first numbers come a minute after the first sandbox.</p>
      </Empty>
    </div>
  );
}

function Used({ samples }: { samples: TeamMetric[] }) {
  const use = useRead<TeamUse>('/limits');
  const times = samples.map(({ timestampUnix }) => timestampUnix);
  const hours = samples.reduce((sum, { sandboxSeconds }) => sum + sandboxSeconds, 0) / hourSeconds;
  const most = Math.max(...samples.map(({ concurrentSandboxes }) => concurrentSandboxes));
  const limit = use.data?.limits.concurrentSandboxes;
  const days = limit === undefined ? null : daysUntil(samples, limit);
  return (
    <>
      <div className="stats">
        <div title="Counted once a minute">
          <strong>{hours < 100 ? hours.toFixed(1) : formatCount(Math.round(hours))}</strong>{' '}
          <span className="muted">sandbox-hours</span>
        </div>
        <div>
          <strong>{formatCount(most)}</strong>{' '}
          <span className="muted">at a time at most{limit !== undefined && `, of ${formatCount(limit)}`}</span>
        </div>
        <div title="By a line through the days of this range">
          <strong>{days === null ? 'not foreseen' : days === 0 ? 'about now' : `in about ${days} days`}</strong>{' '}
          <span className="muted">when the limit is reached, if it goes on like this</span>
        </div>
      </div>
      <div className="columns">
        <PlotCard
          title="Sandboxes at a time"
          name="At most"
          times={times}
          values={samples.map(({ concurrentSandboxes }) => concurrentSandboxes)}
          format={value => String(Math.round(value * 10) / 10)}
        />
        <PlotCard
          title="Starts a minute"
          name="Starts"
          times={times}
          values={samples.map(({ sandboxStartRate }) => sandboxStartRate * 60)}
          format={value => value.toFixed(1)}
        />
      </div>
    </>
  );
}

type PlotCardProps = {
  title: string;
  name: string;
  times: number[];
  values: number[];
  format: (value: number) => string;
};

function PlotCard({ title, times, ...series }: PlotCardProps) {
  return (
    <Card title={title}>
      <div className="body">
        <Plot title={title} times={times} series={[series]} />
      </div>
    </Card>
  );
}

const columns = ['timestamp', 'concurrentSandboxes', 'sandboxStartRate', 'sandboxSeconds'] as const;

const usageCsv = (samples: readonly TeamMetric[]): string =>
  csvOf(
    columns,
    samples.map(sample => columns.map(name => sample[name])),
  );
