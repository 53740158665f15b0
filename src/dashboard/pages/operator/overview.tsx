import { Link } from '@tanstack/react-router';
import type { Node } from '../../../protocol/api/node.ts';
import type { Orphans } from '../../../protocol/api/orphan.ts';
import { useRead } from '../../api/hooks.ts';
import { formatCount } from '../../format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { NodeTable } from './nodes.tsx';

const everyMs = 5_000;

type TeamName = { teamID: string; name: string };

/** What an operator wants to know first: nodes, what runs, what was left over. */
export function OperatorOverview() {
  const nodes = useRead<Node[]>('/nodes', { personal: true, every: everyMs });
  const orphans = useRead<Orphans>('/admin/orphans', { personal: true, every: everyMs });
  const counts = useRead<Record<string, number>>('/admin/sandboxes/running-counts', { personal: true, every: everyMs });
  const teams = useRead<TeamName[]>('/admin/teams', { personal: true });
  const sum = (of: (node: Node) => number) => (nodes.data ?? []).reduce((total, node) => total + of(node), 0);
  const leftOver = (orphans.data?.sandboxes.length ?? 0) + (orphans.data?.volumes.length ?? 0);
  return (
    <Page title="Overview" about="The whole installation">
      <div className="stats">
        <Number label="running" value={sum(node => node.sandboxCount)} />
        <Number label="starting" value={sum(node => node.sandboxStartingCount)} />
        <Number label="created since the start" value={sum(node => node.createSuccesses)} />
        <Number label="failed to start" value={sum(node => node.createFails)} />
        <Number label="left over" value={leftOver} />
      </div>
      {leftOver > 0 && (
        <div className="note warn">
          <span className="grow">The nodes keep what the database does not know.</span>
          <Link to="/operator/leftovers" className="button tiny">
            Settle it
          </Link>
        </div>
      )}
      <Card title="Nodes">
        <Loaded of={nodes}>{rows => <NodeTable rows={rows} />}</Loaded>
      </Card>
      <Card title="Running by team">
        <Loaded of={counts}>
          {byTeam => (
            <Table
              label="Running by team"
              rows={Object.entries(byTeam).toSorted(([, a], [, b]) => b - a)}
              keyOf={([teamID]) => teamID}
              empty="No team has a sandbox running"
              columns={[
                { name: 'Team', of: ([id]) => teams.data?.find(({ teamID }) => teamID === id)?.name ?? id },
                { name: 'Running', end: true, of: ([, count]) => formatCount(count) },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

function Number({ label, value }: { label: string; value: number }) {
  return (
    <div>
      <strong>{formatCount(value)}</strong> <span className="muted">{label}</span>
    </div>
  );
}
