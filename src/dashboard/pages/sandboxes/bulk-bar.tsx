import { useQueryClient } from '@tanstack/react-query';
import { Clock, Pause, Play, Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { ask } from '../../api/client.ts';
import type { Ask } from '../../api/client.ts';
import { useTeam } from '../../api/session.tsx';
import { isStale } from '../../api/stale.ts';
import { useClockLead } from '../../parts/bits.tsx';
import { Confirm } from '../../parts/dialog.tsx';
import { useCalls } from '../../code/calls.tsx';
import { useToast } from '../../parts/toasts.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { extension } from './extension.ts';
import { resumeBody } from './resume-body.ts';

/** Parallel requests. */
const atOnce = 4;

type Action = {
  name: string;
  past: string;
  state: ListedSandbox['state'] | null;
  /** `now`: the platform's time, ms. */
  ask: (of: ListedSandbox, now: number) => [string, Ask];
};

const actions: Record<'extend' | 'pause' | 'resume' | 'kill', Action> = {
  extend: {
    name: '+15 min',
    past: 'extended',
    state: 'running',
    ask: ({ sandboxID, endAt }, now) => [
      `/sandboxes/${sandboxID}/timeout`,
      { method: 'POST', body: extension(endAt, now) },
    ],
  },
  pause: {
    name: 'Pause',
    past: 'paused',
    state: 'running',
    ask: ({ sandboxID }) => [`/sandboxes/${sandboxID}/pause`, { method: 'POST' }],
  },
  resume: {
    name: 'Resume',
    past: 'resumed',
    state: 'paused',
    ask: sandbox => [`/sandboxes/${sandbox.sandboxID}/resume`, { method: 'POST', body: resumeBody(sandbox) }],
  },
  kill: {
    name: 'Kill',
    past: 'killed',
    state: null,
    ask: ({ sandboxID }) => [`/sandboxes/${sandboxID}`, { method: 'DELETE' }],
  },
};

/** Does it to all of these, a few at a time; answers for how many it was done, and why not for the others. */
async function askAll(action: Action, all: readonly ListedSandbox[], team: string, lead: number) {
  const queue = [...all];
  const failures: string[] = [];
  let done = 0;
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [path, options] = action.ask(next, Date.now() + lead);
      await ask(path, { ...options, team }).then(
        () => done++,
        (error: Error) => failures.push(error.message),
      );
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return { done, failures };
}

/** Actions on the selected sandboxes; each button says how many of them it applies to. */
export function BulkBar({ selected, onDone }: { selected: ListedSandbox[]; onDone: () => void }) {
  const { teamID } = useTeam();
  const client = useQueryClient();
  const toast = useToast();
  const lead = useClockLead();
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const fits = ({ state }: Action) => selected.filter(sandbox => state === null || sandbox.state === state);
  const { isShowing, show } = useCalls();
  const run = async (action: Action) => {
    setBusy(true);
    const { done, failures } = await askAll(action, fits(action), teamID, lead);
    await client.invalidateQueries({ predicate: ({ queryKey }) => isStale(queryKey[0], ['/v2/sandboxes']) });
    if (done > 0) toast({ kind: 'ok', text: `${done} ${action.past}` });
    if (failures.length > 0) toast({ kind: 'danger', text: `${failures.length} failed: ${failures[0]}` });
    setBusy(false);
    onDone();
  };
  /** Does it, or shows its code. */
  const start = (action: Action) => {
    if (!isShowing) return void run(action);
    const calls = fits(action).map(sandbox => {
      const [path, { method = 'GET', body }] = action.ask(sandbox, Date.now() + lead);
      return { method, path, body, teamID };
    });
    show({ calls, run: () => void run(action) });
  };
  const button = (action: Action, icon: React.ReactNode, onClick: () => void) => (
    <RoleButton
      least="developer"
      className={`button ${action === actions.kill ? 'danger' : ''}`}
      disabled={busy || fits(action).length === 0}
      onClick={onClick}
    >
      {icon} {action.name} {fits(action).length}
    </RoleButton>
  );
  return (
    <div className="note bulk-bar" role="region" aria-label="Chosen sandboxes">
      <span className="grow">{selected.length} chosen</span>
      {button(actions.extend, <Clock size={14} />, () => start(actions.extend))}
      {button(actions.pause, <Pause size={14} />, () => start(actions.pause))}
      {button(actions.resume, <Play size={14} />, () => start(actions.resume))}
      {button(actions.kill, <Trash2 size={14} />, () => setAsking(true))}
      {asking && (
        <ConfirmKill
          count={selected.length}
          onClose={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            start(actions.kill);
          }}
        />
      )}
    </div>
  );
}

type ConfirmKillProps = { count: number; onClose: () => void; onConfirm: () => void };

function ConfirmKill({ count, onClose, onConfirm }: ConfirmKillProps) {
  return (
    <Confirm
      title={`Kill ${count === 1 ? 'this sandbox' : `${count} sandboxes`}?`}
      action="Kill"
      onClose={onClose}
      onConfirm={onConfirm}
    >
      <p className="muted">Their processes end and their disks are deleted. Snapshots and volumes stay.</p>
    </Confirm>
  );
}
