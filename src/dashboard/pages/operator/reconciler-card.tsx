import type { InstallationOverview } from '../../../protocol/api/overview.ts';
import { formatCount } from '../../format.ts';
import { Ago, Badge } from '../../parts/bits.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

type ReconcilerCardProps = Pick<InstallationOverview, 'reconcilers' | 'since'>;

/** What keeps the standing truths, and how its last rounds went; what failed is first. */
export function ReconcilerCard({ reconcilers, since }: ReconcilerCardProps) {
  const rows = reconcilers.toSorted((a, b) => Number(b.lastResult === 'failed') - Number(a.lastResult === 'failed'));
  return (
    <Card
      title="Reconcilers"
      actions={
        <span className="muted small">
          of the process that started <Ago at={since} />
        </span>
      }
    >
      <Table
        label="Reconcilers"
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
    </Card>
  );
}
