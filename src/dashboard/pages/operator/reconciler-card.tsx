import type { InstallationOverview } from '../../../protocol/api/overview.ts';
import { formatCount } from '../../format.ts';
import { Ago, Badge } from '../../parts/bits.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

type Rounds = InstallationOverview['reconcilers'];
type ReconcilerCardProps = Pick<InstallationOverview, 'reconcilers' | 'since'>;

/** The reconcilers: those whose last round failed, and all others on demand. */
export function ReconcilerCard({ reconcilers, since }: ReconcilerCardProps) {
  const failed = reconcilers.filter(({ lastResult }) => lastResult === 'failed');
  return (
    <Card
      title="Reconcilers"
      actions={
        <Badge tone={failed.length > 0 ? 'danger' : 'ok'}>
          {failed.length > 0 ? `${failed.length} failed` : 'the last round of each went well'}
        </Badge>
      }
    >
      {failed.length > 0 && <RoundTable label="Failed rounds" rows={failed} />}
      <details className="body">
        <summary>
          All {formatCount(reconcilers.length)}, of the process that started <Ago at={since} />
        </summary>
        <div style={{ paddingTop: 10 }}>
          <RoundTable label="All reconcilers" rows={reconcilers} />
        </div>
      </details>
    </Card>
  );
}

function RoundTable({ label, rows }: { label: string; rows: Rounds }) {
  return (
    <Table
      label={label}
      rows={rows}
      keyOf={({ name }) => name}
      empty="None has run yet"
      columns={[
        { name: 'Name', of: ({ name }) => name },
        {
          name: 'Last round',
          of: ({ lastResult }) => <Badge tone={lastResult === 'ok' ? 'ok' : 'danger'}>{lastResult}</Badge>,
        },
        { name: 'When', of: ({ lastRunAt }) => <Ago at={lastRunAt} /> },
        { name: 'Rounds', end: true, of: ({ runs }) => formatCount(runs) },
        { name: 'Failed', end: true, of: ({ failures }) => formatCount(failures) },
        { name: 'Failed last', of: ({ lastFailedAt }) => <Ago at={lastFailedAt} /> },
      ]}
    />
  );
}
