import { useQueryClient } from '@tanstack/react-query';
import { Pause, Play, Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';
import { ask } from '../../api/client.ts';
import type { Ask } from '../../api/client.ts';
import { isStale } from '../../api/hooks.ts';
import { useTeam } from '../../api/session.tsx';
import { Confirm } from '../../parts/dialog.tsx';
import { useToast } from '../../parts/toasts.tsx';

/** Requests under way at a time. */
const atOnce = 4;
const resumeSeconds = 300;

type Action = { name: string; past: string; state: ListedSandbox['state'] | null; ask: (id: string) => [string, Ask] };

const actions: Record<'pause' | 'resume' | 'kill', Action> = {
  pause: { name: 'Pause', past: 'paused', state: 'running', ask: id => [`/sandboxes/${id}/pause`, { method: 'POST' }] },
  resume: {
    name: 'Resume',
    past: 'resumed',
    state: 'paused',
    ask: id => [`/sandboxes/${id}/resume`, { method: 'POST', body: { timeout: resumeSeconds } }],
  },
  kill: { name: 'Kill', past: 'killed', state: null, ask: id => [`/sandboxes/${id}`, { method: 'DELETE' }] },
};

/** What can be done with the chosen sandboxes; each button says with how many of them. */
export function BulkBar({ selected, onDone }: { selected: ListedSandbox[]; onDone: () => void }) {
  const { teamID } = useTeam();
  const client = useQueryClient();
  const toast = useToast();
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const fits = ({ state }: Action) => selected.filter(sandbox => state === null || sandbox.state === state);
  const run = async (action: Action) => {
    setBusy(true);
    const queue = fits(action).map(({ sandboxID }) => sandboxID);
    const failures: string[] = [];
    let done = 0;
    const work = async () => {
      for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
        const [path, options] = action.ask(id);
        await ask(path, { ...options, team: teamID }).then(
          () => done++,
          (error: Error) => failures.push(error.message),
        );
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    await client.invalidateQueries({ predicate: ({ queryKey }) => isStale(queryKey[0], ['/v2/sandboxes']) });
    if (done > 0) toast({ kind: 'ok', text: `${done} ${action.past}` });
    if (failures.length > 0) toast({ kind: 'danger', text: `${failures.length} failed: ${failures[0]}` });
    setBusy(false);
    onDone();
  };
  const button = (action: Action, icon: React.ReactNode, onClick: () => void) => (
    <button
      type="button"
      className={`button ${action === actions.kill ? 'danger' : ''}`}
      disabled={busy || fits(action).length === 0}
      onClick={onClick}
    >
      {icon} {action.name} {fits(action).length}
    </button>
  );
  return (
    <div className="note bulk-bar" role="region" aria-label="Chosen sandboxes">
      <span className="grow">{selected.length} chosen</span>
      {button(actions.pause, <Pause size={14} />, () => void run(actions.pause))}
      {button(actions.resume, <Play size={14} />, () => void run(actions.resume))}
      {button(actions.kill, <Trash2 size={14} />, () => setAsking(true))}
      {asking && (
        <Confirm
          title={`Kill ${selected.length === 1 ? 'this sandbox' : `${selected.length} sandboxes`}?`}
          action="Kill"
          busy={busy}
          onClose={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            void run(actions.kill);
          }}
        >
          <p className="muted">Their processes end and their disks are deleted. Snapshots and volumes stay.</p>
        </Confirm>
      )}
    </div>
  );
}
