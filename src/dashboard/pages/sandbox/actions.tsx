import { Camera, Clock, GitFork, HardDrive, Pause, Play, Timer, Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { SandboxDetail } from '../../../protocol/api/sandbox.ts';
import { verdictOn } from '../../../protocol/state.ts';
import type { SandboxOperation } from '../../../protocol/state.ts';
import { useChange } from '../../api/hooks.ts';
import { Asked } from '../../parts/asked.tsx';
import { useClockLead } from '../../parts/bits.tsx';
import { Confirm } from '../../parts/dialog.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { extension } from '../sandboxes/extension.ts';
import { resumeBody } from '../sandboxes/resume-body.ts';

const stale = ['/v2/sandboxes', '/sandboxes', '/events', '/snapshots'];
const resumeSeconds = 300;

/** Actions that ask first. */
type Asking = 'kill' | 'fork' | 'snapshot' | 'time' | 'pause';

/** What can be done with a sandbox. Actions that its state forbids are disabled and say why. */
export function SandboxActions({ of: detail }: { of: SandboxDetail }) {
  const { sandboxID, state, transition, endAt } = detail;
  const [asking, setAsking] = useState<Asking | null>(null);
  const change = useChange('Done', stale);
  const post = (what: string, body?: unknown) =>
    change.mutate({ method: 'POST', path: `/sandboxes/${sandboxID}/${what}`, body });
  const kill = () => change.mutate({ method: 'DELETE', path: `/sandboxes/${sandboxID}` });
  const now = transition ?? state;
  const why = (operation: SandboxOperation) =>
    verdictOn(operation, now) === 'allowed' ? undefined : `Not while it is ${now}`;
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
  const lead = useClockLead();
  const extend = () => post('timeout', extension(endAt, Date.now() + lead));
  return (
    <>
      {state === 'running' && button('+15 min', <Clock size={14} />, 'setTimeout', extend)}
      {state === 'running' && button('Set time', <Timer size={14} />, 'setTimeout', () => setAsking('time'))}
      {state === 'running'
        ? button('Pause', <Pause size={14} />, 'pause', () => post('pause'))
        : button('Resume', <Play size={14} />, 'resume', () => post('resume', resumeBody(detail)))}
      {state === 'running' && button('Pause files', <HardDrive size={14} />, 'pause', () => setAsking('pause'))}
      {button('Fork', <GitFork size={14} />, 'fork', () => setAsking('fork'))}
      {button('Snapshot', <Camera size={14} />, 'snapshot', () => setAsking('snapshot'))}
      {button('Kill', <Trash2 size={14} />, 'kill', () => setAsking('kill'))}
      {asking !== null && <Question asking={asking} onClose={() => setAsking(null)} post={post} kill={kill} />}
    </>
  );
}

type QuestionProps = {
  asking: Asking;
  onClose: () => void;
  post: (what: string, body: unknown) => void;
  kill: () => void;
};

/** Asks for what an action needs, or for confirmation. */
function Question({ asking, onClose, post, kill }: QuestionProps) {
  if (asking === 'kill')
    return (
      <Confirm
        title="Kill this sandbox?"
        action="Kill"
        onClose={onClose}
        onConfirm={() => {
          onClose();
          kill();
        }}
      >
        <p className="muted">Its processes end and its disk is deleted. Snapshots and volumes stay.</p>
      </Confirm>
    );
  if (asking === 'pause')
    return (
      <Confirm
        title="Pause with its files alone?"
        action="Pause files"
        onClose={onClose}
        onConfirm={() => {
          onClose();
          post('pause', { memory: false });
        }}
      >
        <p className="muted">Its processes end. When it is resumed, it boots from its files.</p>
      </Confirm>
    );
  if (asking === 'time')
    return (
      <Asked
        title="Set when its time is over"
        label="Minutes from now"
        type="text"
        pattern="[1-9][0-9]{0,4}"
        required
        initial="60"
        action="Set"
        onClose={onClose}
        onDone={text => post('timeout', { timeout: Number(text) * 60 })}
      />
    );
  if (asking === 'fork')
    return (
      <Asked
        title="Fork this sandbox"
        label="How many"
        type="number"
        action="Fork"
        onClose={onClose}
        onDone={text => post('fork', { count: Number(text), timeout: resumeSeconds })}
      />
    );
  return (
    <Asked
      title="Take a snapshot"
      label="Name (may be left out)"
      type="text"
      action="Take"
      onClose={onClose}
      onDone={text => post('snapshots', text === '' ? {} : { name: text })}
    />
  );
}
