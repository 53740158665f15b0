import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Box, Camera } from 'lucide-react';
import { useState } from 'react';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import type { SnapshotInfo } from '../../../protocol/api/lifecycle.ts';
import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { askJson } from '../../api/client.ts';
import { rowsOfPages, usePages } from '../../api/pages.ts';
import { useTeam } from '../../api/session.tsx';
import { Ago } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { useForbidden } from '../../parts/role-button.tsx';
import { MoreOf } from '../../parts/rows/paged.tsx';
import { ancestorOf, childrenOf } from './relatives.ts';
import type { Relative } from './relatives.ts';
import { useSandbox } from './sandbox.tsx';

/** How many generations above a sandbox are looked up. */
const ancestorsMax = 10;
const eventsMax = 100;

/** Where a sandbox comes from and what came from it: forks, snapshots, sandboxes made from those. */
export function Family() {
  const { sandboxId, detail } = useSandbox();
  const { teamID } = useTeam();
  const root = useQuery({
    queryKey: ['/events/sandboxes', 'root', sandboxId],
    async queryFn({ signal }) {
      let first = sandboxId;
      for (let above = 0; above < ancestorsMax; above++) {
        const path = `/events/sandboxes/${encodeURIComponent(first)}`;
        const query = { types: 'sandbox.lifecycle.created', limit: eventsMax };
        const from = ancestorOf(await askJson<LifecycleEvent[]>(path, { team: teamID, query, signal }));
        if (from === undefined) break;
        first = from;
      }
      return first;
    },
  });
  return (
    <Card title="Snapshots and forks">
      <div className="body">
        <Loaded of={root}>
          {first => (
            <ul className="tree" aria-label="Snapshots and forks">
              {first === sandboxId && detail && (
                <li className="small muted">
                  from the template{' '}
                  <Link to="/templates/$templateId" params={{ templateId: detail.templateID }} className="mono">
                    {detail.alias ?? detail.templateID}
                  </Link>
                </li>
              )}
              <SandboxNode of={{ kind: 'sandbox', id: first, at: undefined }} here={sandboxId} depth={0} />
            </ul>
          )}
        </Loaded>
      </div>
    </Card>
  );
}

/** Generations that are opened by default. */
const openedDepth = 2;

type NodeProps = { of: Relative; here: string; depth: number };

function SandboxNode({ of: { id, at }, here, depth }: NodeProps) {
  const path = `/events/sandboxes/${encodeURIComponent(id)}`;
  const [open, setOpen] = useState(depth < openedDepth || id === here);
  const query = { types: 'sandbox.lifecycle.forked,sandbox.lifecycle.checkpointed' };
  const events = usePages<LifecycleEvent>(path, { query, byOffset: true, enabled: open });
  const snapshots = usePages<SnapshotInfo>('/snapshots', { query: { sandboxID: id }, enabled: open });
  const children = childrenOf(rowsOfPages(events), rowsOfPages(snapshots));
  return (
    <li>
      <div className="row" style={{ gap: 6 }}>
        <Box size={14} aria-label="Sandbox" />
        {id === here ? (
          <strong className="mono">{id}</strong>
        ) : (
          <Link to="/sandboxes/$sandboxId" params={{ sandboxId: id }} className="mono">
            {id}
          </Link>
        )}
        {id === here && <span className="small muted">this one</span>}
        {at !== undefined && (
          <span className="small muted">
            <Ago at={at} />
          </span>
        )}
        {!open && (
          <button type="button" className="linklike small" onClick={() => setOpen(true)}>
            What came of it
          </button>
        )}
      </div>
      {open && (children.length > 0 || snapshots.hasNextPage || events.hasNextPage) && (
        <ul>
          {children.map(child =>
            child.kind === 'sandbox' ? (
              <SandboxNode key={child.id} of={child} here={here} depth={depth + 1} />
            ) : (
              <SnapshotNode key={child.id} of={child} here={here} depth={depth + 1} />
            ),
          )}
          {snapshots.hasNextPage && (
            <li>
              <MoreOf of={snapshots} />
            </li>
          )}
          {events.hasNextPage && (
            <li>
              <MoreOf of={events} />
            </li>
          )}
        </ul>
      )}
    </li>
  );
}

function SnapshotNode({ of: { id, at }, here, depth }: NodeProps) {
  const [template = ''] = id.split(':');
  const forbidden = useForbidden('developer');
  const begun = usePages<ListedSandbox>('/v2/sandboxes', { query: { template, state: 'running,paused' } });
  return (
    <li>
      <div className="row" style={{ gap: 6 }}>
        <Camera size={14} aria-label="Snapshot" />
        <span className="mono">{id}</span>
        {at !== undefined && (
          <span className="small muted">
            <Ago at={at} />
          </span>
        )}
        <Link
          to="/sandboxes"
          search={{ create: id }}
          className="small"
          disabled={forbidden !== undefined}
          title={forbidden}
        >
          Start from it
        </Link>
      </div>
      {rowsOfPages(begun).length > 0 && (
        <ul>
          {rowsOfPages(begun).map(({ sandboxID, startedAt }) => (
            <SandboxNode
              key={sandboxID}
              of={{ kind: 'sandbox', id: sandboxID, at: startedAt }}
              here={here}
              depth={depth + 1}
            />
          ))}
          {begun.hasNextPage && (
            <li>
              <MoreOf of={begun} />
            </li>
          )}
        </ul>
      )}
    </li>
  );
}
