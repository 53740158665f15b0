import { useState } from 'react';
import { type DrainMode, drainModes, type NodeDrain } from '../../../../protocol/api/drain.ts';
import { useChange, useRead } from '../../../api/hooks.ts';
import { formatCount } from '../../../format.ts';
import { Dialog, DialogFooter } from '../../../parts/dialog.tsx';

const become: Record<DrainMode, string> = {
  wait: 'its sandboxes run on until they end',
  pause: 'they are paused with their memory',
  move: 'they go on at other machines, with their memory and files',
};

/** Asks how to drain a machine, and tells for each mode what could not move. */
export function DrainDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const [mode, setMode] = useState<DrainMode>('wait');
  const path = `/admin/nodes/${encodeURIComponent(id)}/drain`;
  const there = useRead<NodeDrain>(path, { personal: true, query: { mode } });
  const change = useChange('Changed', ['/nodes', path], true);
  const all = there.data?.sandboxes ?? [];
  const stuck = all.filter(({ reason }) => reason !== undefined);
  return (
    <Dialog
      title={`Drain ${id}?`}
      onClose={onClose}
      onSubmit={() => change.mutate({ method: 'POST', path, body: { mode }, then: onClose })}
    >
      <p className="muted">
        It takes no new sandboxes. {formatCount(all.length)} {all.length === 1 ? 'is' : 'are'} there now.
      </p>
      <fieldset className="stack" style={{ gap: 8 }}>
        <legend>What it has</legend>
        {drainModes.map(one => (
          <label key={one} className="check">
            <input type="radio" name="mode" checked={mode === one} onChange={() => setMode(one)} />
            <span>
              {one} <span className="muted">{become[one]}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {stuck.length > 0 && (
        <div className="stack" role="status">
          <p>{formatCount(stuck.length)} can’t go in this way now:</p>
          <ul>
            {stuck.map(({ sandboxID, reason }) => (
              <li key={sandboxID}>
                <span className="mono">{sandboxID}</span> <span className="muted">{reason}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      <DialogFooter action="Drain" busy={change.isPending} onClose={onClose} />
    </Dialog>
  );
}
