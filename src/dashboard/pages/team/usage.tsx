import { Link, useSearch } from '@tanstack/react-router';
import type { TeamMetric, TemplateUse } from '../../../protocol/api/metrics.ts';
import type { TeamUse } from '../../../protocol/api/team.ts';
import { useRead } from '../../api/hooks.ts';
import { useTeam } from '../../api/session.tsx';
import { formatCount } from '../../format.ts';
import { Copy, Empty, Meter, useClockLead } from '../../parts/bits.tsx';
import { csvOf } from '../../parts/csv.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { Plot } from '../../parts/plot.tsx';
import { CsvButton, Table } from '../../parts/table.tsx';
import { LimitsCard } from './limits-card.tsx';
import { daysUntil } from './trend.ts';
import { usageRanges } from './usage-search.ts';
import type { UsageRange, UsageSearch } from './usage-search.ts';

const everyMs = 30_000;
const hourSeconds = 3_600;

/** How many sandboxes a team runs and starts, and for how long they run. */
export function Usage() {
  const { teamID } = useTeam();
  const { range = '24h' }: UsageSearch = useSearch({ strict: false });
  const minute = Math.floor((Date.now() + useClockLead()) / 60_000) * 60;
  const span = { query: { start: minute - usageRanges[range], end: minute + 60 }, every: everyMs };
  const metrics = useRead<TeamMetric[]>(`/teams/${teamID}/metrics`, span);
  const templates = useRead<TemplateUse[]>(`/teams/${teamID}/metrics/templates`, span);
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
      <Loaded of={templates}>{used => used.length > 0 && <TemplateHours used={used} />}</Loaded>
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
  const hours = hoursOf(samples);
  const most = Math.max(...samples.map(({ concurrentSandboxes }) => concurrentSandboxes));
  const limit = use.data?.limits.concurrentSandboxes;
  const days = limit === undefined ? null : daysUntil(samples, limit);
  return (
    <>
      <div className="stats">
        <div title="Counted once a minute">
          <strong>{formatHours(hours)}</strong> <span className="muted">sandbox-hours</span>
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

const hoursOf = (parts: readonly { sandboxSeconds: number }[]): number =>
  parts.reduce((sum, { sandboxSeconds }) => sum + sandboxSeconds, 0) / hourSeconds;

const formatHours = (hours: number): string => (hours < 100 ? hours.toFixed(1) : formatCount(Math.round(hours)));

/** How long sandboxes of each template ran, as shares of the total. */
function TemplateHours({ used }: { used: TemplateUse[] }) {
  const all = hoursOf(used);
  const shareOf = (use: TemplateUse) => (all === 0 ? 0 : hoursOf([use]) / all);
  return (
    <Card title="Sandbox-hours by template" actions={<CsvButton name="template-hours" of={() => templatesCsv(used)} />}>
      <Table
        label="Sandbox-hours by template"
        columns={[
          { name: 'Template', of: templateLink },
          { name: 'Hours', end: true, of: use => formatHours(hoursOf([use])) },
          {
            name: 'Part of all',
            of: use => <Meter share={shareOf(use)} label={`${Math.round(shareOf(use) * 100)} %`} wide plain />,
          },
        ]}
        rows={used}
        keyOf={({ templateID }) => templateID}
        empty="Nothing was counted yet"
      />
    </Card>
  );
}

/** A template without a name is gone, or was a snapshot. */
const templateLink = ({ names: [name], templateID }: TemplateUse) =>
  name === undefined ? (
    <Copy text={templateID} />
  ) : (
    <Link to="/templates/$templateId" params={{ templateId: templateID }}>
      {name}
    </Link>
  );

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

const templatesCsv = (used: readonly TemplateUse[]): string =>
  csvOf(
    ['templateID', 'name', 'sandboxSeconds'],
    used.map(({ templateID, names, sandboxSeconds }) => [templateID, names[0], sandboxSeconds]),
  );
