import { Link } from '@tanstack/react-router';
import type { NodeDrain } from '../../../../protocol/api/drain.ts';
import type { AdminTeam } from '../../../../protocol/api/team.ts';
import { useRead } from '../../../api/hooks.ts';
import { formatCount } from '../../../format.ts';
import { Loaded } from '../../../parts/loaded.tsx';
import { Card } from '../../../parts/page.tsx';
import { Table } from '../../../parts/table.tsx';

const everyMs = 2_000;

/** What a node has, and its progress while it is drained. */
export function NodeContent({ id }: { id: string }) {
  const drain = useRead<NodeDrain>(`/admin/nodes/${encodeURIComponent(id)}/drain`, { personal: true, every: everyMs });
  const teams = useRead<AdminTeam[]>('/admin/teams', { personal: true });
  const teamOf = (id: string) => teams.data?.find(({ teamID }) => teamID === id);
  return (
    <Loaded of={drain}>
      {of => (
        <>
          {of.mode !== 'none' && <Progress of={of} />}
          <Card title="Sandboxes">
            <SandboxesThere of={of} teamOf={teamOf} />
          </Card>
          {of.volumes.length > 0 && (
            <Card title="Volumes">
              <Table
                label="Volumes of the node"
                rows={of.volumes}
                keyOf={({ volumeID }) => volumeID}
                empty="None"
                columns={[
                  { name: 'Volume', of: ({ name }) => name },
                  { name: 'Team', of: ({ teamID }) => teamOf(teamID)?.name ?? teamID },
                  { name: 'Why it can’t go', of: ({ reason }) => reason ?? <span className="muted">it can</span> },
                ]}
              />
            </Card>
          )}
        </>
      )}
    </Loaded>
  );
}

const ways = { wait: 'as its sandboxes end', pause: 'by pauses', move: 'by moves' };

/** For a node that runs nothing: what goes with it when it is switched off for good. */
function emptyText({ sandboxes, volumes }: NodeDrain['kept']): string {
  if (sandboxes + volumes === 0) return 'The node is empty, and takes no new sandboxes.';
  return (
    `The node runs nothing, and takes no new sandboxes. On its disk alone, and lost with it: ` +
    `${formatCount(sandboxes)} paused, and ${formatCount(volumes)} ${volumes === 1 ? 'volume' : 'volumes'}.`
  );
}

/** What is left on a node that is being drained. */
function Progress({ of: { mode, sandboxes, volumes, kept } }: { of: NodeDrain }) {
  const left = [...sandboxes, ...volumes];
  const stuck = left.filter(({ reason }) => reason !== undefined).length;
  const things = [
    `${formatCount(sandboxes.length)} ${sandboxes.length === 1 ? 'sandbox' : 'sandboxes'}`,
    ...(volumes.length > 0 ? [`${formatCount(volumes.length)} ${volumes.length === 1 ? 'volume' : 'volumes'}`] : []),
  ];
  return (
    <div className={`note ${stuck > 0 ? 'warn' : ''}`} role="status">
      <span className="grow">
        {left.length === 0
          ? emptyText(kept)
          : `The node is being emptied ${mode === 'none' ? '' : ways[mode]}: ${things.join(' and ')} left.`}
        {stuck > 0 && ` ${formatCount(stuck)} can’t go now; the reasons are below.`}
      </span>
    </div>
  );
}

type SandboxesProps = { of: NodeDrain; teamOf: (teamID: string) => AdminTeam | undefined };

function SandboxesThere({ of: { mode, sandboxes }, teamOf }: SandboxesProps) {
  return (
    <Table
      label="Sandboxes of the node"
      rows={sandboxes}
      keyOf={({ sandboxID }) => sandboxID}
      empty="None runs here"
      columns={[
        {
          name: 'Sandbox',
          of: ({ sandboxID, teamID }) => {
            const team = teamOf(teamID);
            if (!team) return <span className="mono">{sandboxID}</span>;
            return (
              <Link
                to="/sandboxes/$sandboxId"
                params={{ sandboxId: sandboxID }}
                search={{ team: team.slug }}
                className="mono"
              >
                {sandboxID}
              </Link>
            );
          },
        },
        { name: 'Team', of: ({ teamID }) => teamOf(teamID)?.name ?? teamID },
        { name: 'Template', of: ({ templateID }) => <span className="mono">{templateID}</span> },
        {
          name: mode === 'none' ? 'What speaks against a pause' : 'Why it can’t go',
          of: ({ reason }) => reason ?? <span className="muted">nothing</span>,
        },
      ]}
    />
  );
}
