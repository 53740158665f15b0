import type { InstallationOverview } from '../../../protocol/api/overview.ts';
import { formatCount } from '../../format.ts';
import { Meter } from '../../parts/bits.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

type FailureCardProps = { creates: InstallationOverview['creates'] };

/** Why creates failed in the last hour; nothing if none did. */
export function FailureCard({ creates: { causes, failed, succeeded } }: FailureCardProps) {
  if (failed === 0) return null;
  return (
    <Card title={`${formatCount(failed)} of ${formatCount(failed + succeeded)} creates failed in the last hour`}>
      <Table
        label="Failures by cause"
        rows={causes}
        keyOf={({ cause }) => cause}
        empty="None"
        columns={[
          { name: 'Cause', of: ({ cause }) => <span className="mono">{cause}</span> },
          {
            name: 'Share',
            of: ({ cause, count }) => <Meter share={count / failed} label={`${cause}: ${count} of ${failed}`} plain />,
          },
          { name: 'Creates', end: true, of: ({ count }) => formatCount(count) },
        ]}
      />
    </Card>
  );
}
