import { useState } from 'react';
import { counted } from '../../../../base/counted.ts';
import type { NodeDrain } from '../../../../protocol/api/drain.ts';
import type { NodeDetail } from '../../../../protocol/api/node.ts';
import { useChange, useRead } from '../../../api/hooks.ts';
import { DeleteButton } from '../../../parts/delete-button.tsx';
import { DrainDialog } from './drain.tsx';

type Of = { of: Pick<NodeDetail, 'id' | 'status'> };

/** Drains a node, or makes it accept new sandboxes again. */
export function StatusButton({ of: { id, status } }: Of) {
  const [asking, setAsking] = useState(false);
  const change = useStatusChange(id);
  if (status !== 'ready')
    return (
      <button
        type="button"
        className="button tiny"
        disabled={status !== 'draining' && status !== 'standby'}
        title={isThere(status) ? undefined : 'It is out of reach'}
        onClick={() => change('ready')}
      >
        Take new ones
      </button>
    );
  return (
    <>
      <button type="button" className="button tiny" onClick={() => setAsking(true)}>
        Drain
      </button>
      {asking && <DrainDialog id={id} onClose={() => setAsking(false)} />}
    </>
  );
}

/** Everything that can be done with a node. */
export function NodeActions({ of }: Of) {
  const { id, status } = of;
  const change = useStatusChange(id);
  return (
    <>
      {status === 'ready' && (
        <button
          type="button"
          className="button tiny"
          title="What it has goes on; sandboxes begin elsewhere"
          onClick={() => change('standby')}
        >
          Cordon
        </button>
      )}
      <StatusButton of={of} />
      <DeleteButton
        action="Forget"
        what={`node ${id}`}
        path={`/admin/nodes/${encodeURIComponent(id)}`}
        stale={['/nodes']}
        personal
      >
        Its certificate is worth nothing any more. What it alone has is lost: <Losses id={id} />. Sandboxes whose pause
        is in the store are not. A node that is in reach must be empty.
      </DeleteButton>
    </>
  );
}

/** What would be lost with a node. In this mode the node itself is not asked, because it may be gone. */
function Losses({ id }: Pick<NodeDetail, 'id'>) {
  const path = `/admin/nodes/${encodeURIComponent(id)}/drain`;
  const { data } = useRead<NodeDrain>(path, { personal: true, query: { mode: 'wait' } });
  if (!data) return <>…</>;
  const { sandboxes, kept } = data;
  return (
    <>
      {counted(sandboxes.length, 'running sandbox', 'running sandboxes')},{' '}
      {counted(kept.sandboxes, 'paused one', 'paused ones')}, {counted(kept.volumes, 'volume')} without a copy
    </>
  );
}

const isThere = (status: NodeDetail['status']) => status !== 'unhealthy' && status !== 'connecting';

function useStatusChange(id: string): (status: NodeDetail['status']) => void {
  const path = `/nodes/${encodeURIComponent(id)}`;
  const change = useChange('Changed', ['/nodes', `/admin${path}`], true);
  return status => change.mutate({ method: 'POST', path, body: { status } });
}
