import type { InstallationOverview } from '../../../protocol/api/overview.ts';
import { formatBytes } from '../../format.ts';
import { Ago, Badge, Meter, useClockLead } from '../../parts/bits.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

type DiskCardProps = { disks: InstallationOverview['disks'] };

/** A disk that will be full sooner than this needs attention, ms. */
const soonMs = 3 * 24 * 3_600_000;

/** The disks of the nodes, and when they will be full at the present rate. */
export function DiskCard({ disks }: DiskCardProps) {
  return (
    <Card title="Disks">
      <Table
        label="Disks"
        rows={disks}
        keyOf={({ nodeID, mountPoint }) => `${nodeID} ${mountPoint}`}
        empty="No node has told of its disks yet"
        columns={[
          { name: 'Node', of: ({ nodeID }) => <span className="mono">{nodeID.slice(0, 8)}</span> },
          { name: 'Disk', of: ({ mountPoint }) => <span className="mono">{mountPoint}</span> },
          {
            name: 'Taken',
            of: ({ usedBytes, totalBytes }) => (
              <span className="row num" style={{ gap: 6, flexWrap: 'nowrap', whiteSpace: 'nowrap' }}>
                <Meter share={usedBytes / Math.max(1, totalBytes)} label={formatBytes(usedBytes)} />
                {formatBytes(usedBytes)} of {formatBytes(totalBytes)}
              </span>
            ),
          },
          { name: 'Full', of: ({ fullAt }) => <Full at={fullAt} /> },
        ]}
      />
    </Card>
  );
}

function Full({ at }: { at: string | null }) {
  const lead = useClockLead();
  if (at === null) return <span className="muted">not foreseen</span>;
  const isSoon = Date.parse(at) - Date.now() - lead < soonMs;
  return isSoon ? (
    <Badge tone="danger">
      <Ago at={at} />
    </Badge>
  ) : (
    <Ago at={at} />
  );
}
