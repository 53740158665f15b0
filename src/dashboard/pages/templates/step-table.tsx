import { useNavigate, useSearch } from '@tanstack/react-router';
import type { BuildLogEntry } from '../../../protocol/api/template-build.ts';
import { useLogStream } from '../../api/log-stream.ts';
import type { LogStream } from '../../api/log-stream.ts';
import { rowsOfPages, useReadOn } from '../../api/pages.ts';
import { formatDuration } from '../../../base/duration.ts';
import { formatCount } from '../../format.ts';
import { Badge, Problem } from '../../parts/bits.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { ExactTime } from '../../parts/zone.tsx';
import type { BuildSearch } from './build-search.ts';
import { useBuilds } from './builds.ts';
import { compareSteps, stepsOf } from './steps.ts';
import type { Step } from './steps.ts';

type Log = Pick<LogStream<BuildLogEntry>, 'entries' | 'dropped'>;
type StepTableProps = { templateId: string; buildId: string; log: Log };

/** The steps of a build with their durations, beside those of another build if one is chosen. */
export function StepTable({ templateId, buildId, log }: StepTableProps) {
  const search: BuildSearch = useSearch({ strict: false });
  const steps = stepsOf(log.entries ?? []);
  if (steps.length === 0) return null;
  const choice = <OtherBuild templateId={templateId} buildId={buildId} chosen={search.with} />;
  return (
    <Card title="Steps" actions={choice}>
      {search.with === undefined ? (
        <Table
          label="Steps"
          rows={steps}
          keyOf={({ place }) => place}
          empty="None"
          columns={[
            { name: 'Step', of: ({ place }) => <span className="mono">{place}</span> },
            { name: 'What', of: ({ what }) => <What text={what} /> },
            { name: 'Took', end: true, of: step => <Took of={step} /> },
          ]}
        />
      ) : (
        <Compared key={search.with} steps={steps} templateId={templateId} other={search.with} />
      )}
      <Missing of={log} what="this build" />
    </Card>
  );
}

/** Stands for no single build, but for those that have not been read yet. */
const earlier = 'earlier';

type OtherBuildProps = { templateId: string; buildId: string; chosen: string | undefined };

/** Chooses the build to compare with: the last good one comes first. */
function OtherBuild({ templateId, buildId, chosen }: OtherBuildProps) {
  const navigate = useNavigate();
  const builds = useBuilds(templateId);
  const others = rowsOfPages(builds)
    .filter(({ buildID }) => buildID !== buildId)
    .toSorted((a, b) => Number(b.status === 'ready') - Number(a.status === 'ready'));
  const hasGood = others.some(({ status }) => status === 'ready');
  const hasChosen = chosen === undefined || others.some(({ buildID }) => buildID === chosen);
  useReadOn(builds, !hasGood || !hasChosen);
  if (others.length === 0) return null;
  return (
    <select
      aria-label="Compare with"
      value={chosen ?? ''}
      onChange={({ target: { value } }) =>
        value === earlier
          ? void builds.fetchNextPage({ cancelRefetch: false })
          : void navigate({ to: '.', search: value === '' ? {} : { with: value }, replace: true })
      }
    >
      <option value="">Compare with…</option>
      {others.map(({ buildID, status, createdAt }) => (
        <option key={buildID} value={buildID}>
          {buildID.slice(0, 8)}, {status}, of <ExactTime at={createdAt} />
        </option>
      ))}
      {builds.hasNextPage && <option value={earlier}>Show earlier builds</option>}
    </select>
  );
}

function Compared({ steps, templateId, other }: { steps: Step[]; templateId: string; other: string }) {
  const path = `/templates/${encodeURIComponent(templateId)}/builds/${encodeURIComponent(other)}`;
  const log = useLogStream<BuildLogEntry>(`${path}/logs/stream`, {});
  return (
    <>
      {log.error && <Problem error={log.error} />}
      <Table
        label="Steps"
        rows={compareSteps(steps, stepsOf(log.entries ?? []))}
        keyOf={({ key }) => key}
        empty="None"
        columns={[
          { name: 'What', of: ({ here, there }) => <What text={(here ?? there)?.what ?? ''} /> },
          { name: 'Here', end: true, of: ({ here }) => <Took of={here} /> },
          { name: other.slice(0, 8), end: true, of: ({ there }) => <Took of={there} /> },
          {
            name: 'Difference',
            end: true,
            of: ({ here, there }) =>
              here && there && here.tookMs !== null && there.tookMs !== null
                ? signed(here.tookMs - there.tookMs)
                : here && there
                  ? ''
                  : here
                    ? 'only here'
                    : 'only there',
          },
        ]}
      />
      <Missing of={log} what={other.slice(0, 8)} />
    </>
  );
}

/** Steps come from the log, of which only the newest entries are kept here. */
const Missing = ({ of: { dropped }, what }: { of: Log; what: string }) =>
  dropped > 0 && (
    <p className="small muted body">
      Steps that the first {formatCount(dropped)} entries of the log of {what} tell of are not shown.
    </p>
  );

const signed = (ms: number) => `${ms < 0 ? '−' : '+'}${(Math.abs(ms) / 1000).toFixed(1)} s`;

const What = ({ text }: { text: string }) => (
  <span className="mono cut what" title={text}>
    {text}
  </span>
);

function Took({ of }: { of: Step | null }) {
  if (!of) return <span className="muted">–</span>;
  if (of.isCached) return <Badge tone="idle">cached</Badge>;
  if (of.tookMs === null) return <span className="muted">…</span>;
  const text = of.tookMs < 10_000 ? `${(of.tookMs / 1000).toFixed(1)} s` : formatDuration(of.tookMs);
  return of.hasFailed ? <Badge tone="danger">failed after {text}</Badge> : text;
}
