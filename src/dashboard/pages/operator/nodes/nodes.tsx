import { Link } from '@tanstack/react-router';
import type { Node } from '../../../../protocol/api/node.ts';
import { useRead } from '../../../api/hooks.ts';
import { formatBytes, formatCount } from '../../../format.ts';
import { Ago, Badge, Taken } from '../../../parts/bits.tsx';
import { Loaded } from '../../../parts/loaded.tsx';
import { Page } from '../../../parts/page.tsx';
import { Table } from '../../../parts/table.tsx';
import { StatusButton } from './node-actions.tsx';
import { statusTone } from './status-tone.ts';

const everyMs = 5_000;

/** The machines that host sandboxes. */
export function Nodes() {
  const nodes = useRead<Node[]>('/nodes', { personal: true, every: everyMs });
  return (
    <Page title="Nodes">
      <Loaded of={nodes}>{rows => <NodeTable rows={rows} />}</Loaded>
    </Page>
  );
}

/** A table of the nodes and how much of each is used. */
export function NodeTable({ rows }: { rows: Node[] }) {
  return (
    <Table
      label="Nodes"
      rows={rows}
      keyOf={({ id }) => id}
      empty="There is no node"
      columns={[
        { name: 'Status', of: ({ status }) => <Badge tone={statusTone[status]}>{status}</Badge> },
        {
          name: 'Node',
          of: ({ id }) => (
            <Link to="/operator/nodes/$nodeId" params={{ nodeId: id }} className="mono">
              {id.slice(0, 8)}
            </Link>
          ),
        },
        { name: 'Since', of: ({ statusChangedAt }) => <Ago at={statusChangedAt} /> },
        { name: 'Sandboxes', end: true, of: ({ sandboxCount }) => formatCount(sandboxCount) },
        {
          name: 'CPU',
          of: ({ metrics }) => <Taken share={metrics.cpuPercent / 100} text={`${metrics.cpuPercent} %`} />,
        },
        {
          name: 'Memory',
          of: ({ metrics }) => (
            <Taken
              share={metrics.memoryUsedBytes / Math.max(1, metrics.memoryTotalBytes)}
              text={formatBytes(metrics.memoryUsedBytes)}
            />
          ),
        },
        { name: ' ', end: true, of: node => <StatusButton of={node} /> },
      ]}
    />
  );
}
