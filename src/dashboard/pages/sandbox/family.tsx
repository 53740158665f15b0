import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Box, Camera } from 'lucide-react';
import { useState } from 'react';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import type { SnapshotInfo } from '../../../protocol/api/lifecycle.ts';
import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { askJson } from '../../api/client.ts';
import { useRead } from '../../api/hooks.ts';
import { useTeam } from '../../api/session.tsx';
import { Ago } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { ancestorOf, childrenOf } from './relatives.ts';
import type { Relative } from './relatives.ts';
import { useSandbox } from './sandbox.tsx';

/** Generations that are looked for above a sandbox. */
const ancestorsMax = 10;
const eventsMax = 100;

/** Where a sandbox comes from and what came of it: forks, snapshots, sandboxes that began from those. */
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

/** Generations that are opened without being asked. */
const openedDepth = 2;

type NodeProps = { of: Relative; here: string; depth: number };

function SandboxNode({ of: { id, at }, here, depth }: NodeProps) {
  const path = `/events/sandboxes/${encodeURIComponent(id)}`;
  const [open, setOpen] = useState(depth < openedDepth || id === here);
  const query = { types: 'sandbox.lifecycle.forked,sandbox.lifecycle.checkpointed', limit: eventsMax };
  const events = useRead<LifecycleEvent[]>(path, { query, enabled: open });
  const snapshots = useRead<SnapshotInfo[]>('/snapshots', { query: { sandboxID: id }, enabled: open });
  const children = childrenOf(events.data ?? [], snapshots.data ?? []);
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
      {open && children.length > 0 && (
        <ul>
          {children.map(child =>
            child.kind === 'sandbox' ? (
              <SandboxNode key={child.id} of={child} here={here} depth={depth + 1} />
            ) : (
              <SnapshotNode key={child.id} of={child} here={here} depth={depth + 1} />
            ),
          )}
        </ul>
      )}
    </li>
  );
}

function SnapshotNode({ of: { id, at }, here, depth }: NodeProps) {
  const [template = ''] = id.split(':');
  const begun = useRead<ListedSandbox[]>('/v2/sandboxes', { query: { template, state: 'running,paused' } });
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
        <Link to="/sandboxes" search={{ create: id }} className="small">
          Start from it
        </Link>
      </div>
      {(begun.data ?? []).length > 0 && (
        <ul>
          {begun.data?.map(({ sandboxID, startedAt }) => (
            <SandboxNode
              key={sandboxID}
              of={{ kind: 'sandbox', id: sandboxID, at: startedAt }}
              here={here}
              depth={depth + 1}
            />
          ))}
        </ul>
      )}
    </li>
  );
}
