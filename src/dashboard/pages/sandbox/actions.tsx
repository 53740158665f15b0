import { Camera, Clock, GitFork, Pause, Play, Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { SandboxDetail } from '../../../protocol/api/sandbox.ts';
import { verdictOn } from '../../../protocol/state.ts';
import type { SandboxOperation } from '../../../protocol/state.ts';
import { useChange } from '../../api/hooks.ts';
import { Asked } from '../../parts/asked.tsx';
import { Confirm } from '../../parts/dialog.tsx';
import { RoleButton } from '../../parts/role-button.tsx';

const stale = ['/v2/sandboxes', '/sandboxes', '/events', '/snapshots'];
const resumeSeconds = 300;
const addedSeconds = 900;

/** What can be done with a sandbox. What its state forbids is disabled and says so. */
export function SandboxActions({ of: { sandboxID, state, endAt } }: { of: SandboxDetail }) {
  const [asking, setAsking] = useState<'kill' | 'fork' | 'snapshot' | null>(null);
  const change = useChange('Done', stale);
  const post = (what: string, body?: unknown) =>
    change.mutate({ method: 'POST', path: `/sandboxes/${sandboxID}/${what}`, body });
  const why = (operation: SandboxOperation) =>
    verdictOn(operation, state) === 'allowed' ? undefined : `Not while it is ${state}`;
  const button = (name: string, icon: React.ReactNode, operation: SandboxOperation, onClick: () => void) => (
    <RoleButton
      least="developer"
      className={`button ${operation === 'kill' ? 'danger' : ''}`}
      disabled={change.isPending || why(operation) !== undefined}
      title={why(operation)}
      onClick={onClick}
    >
      {icon} {name}
    </RoleButton>
  );
  const extend = () => {
    const left = Math.max(0, Math.round((Date.parse(endAt) - Date.now()) / 1000));
    post('timeout', { timeout: left + addedSeconds });
  };
  return (
    <>
      {state === 'running' && button('+15 min', <Clock size={14} />, 'setTimeout', extend)}
      {state === 'running'
        ? button('Pause', <Pause size={14} />, 'pause', () => post('pause'))
        : button('Resume', <Play size={14} />, 'resume', () => post('resume', { timeout: resumeSeconds }))}
      {button('Fork', <GitFork size={14} />, 'fork', () => setAsking('fork'))}
      {button('Snapshot', <Camera size={14} />, 'snapshot', () => setAsking('snapshot'))}
      {button('Kill', <Trash2 size={14} />, 'kill', () => setAsking('kill'))}
      {asking === 'kill' && (
        <Confirm
          title="Kill this sandbox?"
          action="Kill"
          onClose={() => setAsking(null)}
          onConfirm={() => {
            setAsking(null);
            change.mutate({ method: 'DELETE', path: `/sandboxes/${sandboxID}` });
          }}
        >
          <p className="muted">Its processes end and its disk is deleted. Snapshots and volumes stay.</p>
        </Confirm>
      )}
      {asking === 'fork' && (
        <Asked
          title="Fork this sandbox"
          label="How many"
          type="number"
          action="Fork"
          onClose={() => setAsking(null)}
          onDone={text => post('fork', { count: Number(text), timeout: resumeSeconds })}
        />
      )}
      {asking === 'snapshot' && (
        <Asked
          title="Take a snapshot"
          label="Name (may be left out)"
          type="text"
          action="Take"
          onClose={() => setAsking(null)}
          onDone={text => post('snapshots', text === '' ? {} : { name: text })}
        />
      )}
    </>
  );
}
