import { Link } from '@tanstack/react-router';
import type { Node } from '../../../protocol/api/node.ts';
import type { Orphans } from '../../../protocol/api/orphan.ts';
import type { InstallationOverview } from '../../../protocol/api/overview.ts';
import type { StuckSandbox } from '../../../protocol/api/stuck.ts';
import { useRead } from '../../api/hooks.ts';
import { formatCount } from '../../format.ts';
import { Ago, Badge, Copy, Problem } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { DiskCard } from './disk-card.tsx';
import { NodeTable } from './nodes/nodes.tsx';
import { FailureCard } from './failure-card.tsx';
import { ReconcilerCard } from './reconciler-card.tsx';

const everyMs = 5_000;

type TeamName = { teamID: string; name: string };

/** What an operator wants to know first: nodes, what runs, what was left over. */
export function OperatorOverview() {
  const nodes = useRead<Node[]>('/nodes', { personal: true, every: everyMs });
  const orphans = useRead<Orphans>('/admin/orphans', { personal: true, every: everyMs });
  const teams = useRead<TeamName[]>('/admin/teams', { personal: true });
  const nameOf = (id: string) => teams.data?.find(({ teamID }) => teamID === id)?.name ?? id;
  const sum = (of: (node: Node) => number) => (nodes.data ?? []).reduce((total, node) => total + of(node), 0);
  const stuck = useRead<StuckSandbox[]>('/admin/sandboxes/stuck', { personal: true, every: everyMs });
  const seen = useRead<InstallationOverview>('/admin/overview', { personal: true, every: everyMs });
  const leftOver = (orphans.data?.sandboxes.length ?? 0) + (orphans.data?.volumes.length ?? 0);
  return (
    <Page title="Overview" about="The whole installation">
      <div className="stats">
        <Number label="running" value={sum(node => node.sandboxCount)} />
        <Number label="starting" value={sum(node => node.sandboxStartingCount)} />
        <Number
          label="created"
          title="Creates and forks since the platform started"
          value={sum(node => node.createSuccesses)}
        />
        <Number
          label="a create, p50"
          title="Half of the last hour’s creates took no longer"
          text={took(seen.data?.creates.p50Seconds)}
        />
        <Number
          label="a create, p99"
          title="99 of 100 of the last hour’s creates took no longer"
          text={took(seen.data?.creates.p99Seconds)}
        />
        <Number label="failed to start" value={sum(node => node.createFails)} />
        <Number label="stuck" value={stuck.data?.length ?? 0} />
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
      {seen.data && <FailureCard creates={seen.data.creates} />}
      {stuck.error && <Problem error={stuck.error} onRetry={() => void stuck.refetch()} />}
      {stuck.data && stuck.data.length > 0 && (
        <Card title="Stuck">
          <StuckTable rows={stuck.data} nameOf={nameOf} />
        </Card>
      )}
      <Card title="Nodes">
        <Loaded of={nodes}>{rows => <NodeTable rows={rows} />}</Loaded>
      </Card>
      <Loaded of={seen}>
        {({ disks, reconcilers, since }) => (
          <>
            <DiskCard disks={disks} />
            <ReconcilerCard reconcilers={reconcilers} since={since} />
          </>
        )}
      </Loaded>
      <RunningByTeam nameOf={nameOf} />
    </Page>
  );
}

/** How many sandboxes each team runs, the largest number first. */
function RunningByTeam({ nameOf }: { nameOf: (teamID: string) => string }) {
  const counts = useRead<Record<string, number>>('/admin/sandboxes/running-counts', { personal: true, every: everyMs });
  return (
    <Card title="Running by team">
      <Loaded of={counts}>
        {byTeam => (
          <Table
            label="Running by team"
            rows={Object.entries(byTeam).toSorted(([, a], [, b]) => b - a)}
            keyOf={([teamID]) => teamID}
            empty="No team has a sandbox running"
            columns={[
              { name: 'Team', of: ([id]) => nameOf(id) },
              { name: 'Running', end: true, of: ([, count]) => formatCount(count) },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

type StuckTableProps = { rows: StuckSandbox[]; nameOf: (teamID: string) => string };

/** Sandboxes whose transition takes too long: their node, or the process working on them, needs attention. */
function StuckTable({ rows, nameOf }: StuckTableProps) {
  return (
    <Table
      label="Stuck"
      rows={rows}
      keyOf={({ sandboxID }) => sandboxID}
      empty="None"
      columns={[
        { name: 'State', of: ({ state }) => <Badge tone="danger">{state}</Badge> },
        { name: 'Since', of: ({ since }) => <Ago at={since} /> },
        { name: 'Sandbox', of: ({ sandboxID }) => <Copy text={sandboxID} /> },
        { name: 'Team', of: ({ teamID }) => nameOf(teamID) },
        { name: 'Node', of: ({ nodeID }) => <span className="mono">{nodeID}</span> },
      ]}
    />
  );
}

const took = (seconds: number | null | undefined) =>
  seconds == null ? '–' : seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;

type NumberProps = { label: string; value?: number; text?: string; title?: string };

function Number({ label, value, text, title }: NumberProps) {
  return (
    <div title={title}>
      <strong>{text ?? formatCount(value ?? 0)}</strong> <span className="muted">{label}</span>
    </div>
  );
}
