import { useState } from 'react';
import type { AdminTeam } from '../../../protocol/api/team.ts';
import { useChange } from '../../api/hooks.ts';
import { Dialog, DialogFooter } from '../../parts/dialog.tsx';

const words = {
  concurrentSandboxes: 'Sandboxes at once',
  concurrentBuilds: 'Builds at once',
  sandboxes: 'Sandboxes, running and paused',
  templates: 'Templates',
  builds: 'Builds that are kept',
  snapshots: 'Snapshots',
  lifetimeHours: 'Longest life of a run, hours',
  cpuCount: 'CPUs of a sandbox',
  memoryMiB: 'Memory of a sandbox, MiB',
  diskMiB: 'Disk of a sandbox, MiB',
  requestsPerSecond: 'Requests a second',
  volumes: 'Volumes',
  volumeMiB: 'Size of a volume, MiB',
} as const;
type Limit = keyof typeof words;
const names = Object.keys(words) as Limit[];

/** What a team may do. An empty field means the installation's limit. */
export function Limits({ of: { teamID, name, limits }, onClose }: { of: AdminTeam; onClose: () => void }) {
  const [before] = useState<Record<string, string>>(() =>
    Object.fromEntries(names.map(limit => [limit, String(limits[limit] ?? '')])),
  );
  const [texts, setTexts] = useState(before);
  // Only the changed ones: another operator may have changed others since this was opened.
  const changed = names.filter(limit => texts[limit] !== before[limit]);
  const save = useChange('The limits hold from now on', ['/admin/teams'], true);
  const submit = () =>
    save.mutate({
      method: 'PATCH',
      path: `/admin/teams/${teamID}`,
      body: { limits: Object.fromEntries(changed.map(limit => [limit, texts[limit] ? Number(texts[limit]) : null])) },
      then: onClose,
    });
  return (
    <Dialog title={`Limits of ${name}`} onClose={onClose} onSubmit={submit}>
      {names.map(limit => (
        <label key={limit} className="field">
          <span>{words[limit]}</span>
          <input
            type="number"
            min={0}
            placeholder="the installation's"
            value={texts[limit]}
            onChange={event => setTexts({ ...texts, [limit]: event.target.value })}
          />
        </label>
      ))}
      <DialogFooter action="Save" busy={save.isPending} onClose={onClose} />
    </Dialog>
  );
}
