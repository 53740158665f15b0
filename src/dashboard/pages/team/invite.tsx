import { useState } from 'react';
import { roles } from '../../../protocol/api/member.ts';
import { useChange } from '../../api/hooks.ts';
import { Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { ShownOnce } from '../../parts/shown-once.tsx';

const may: Record<(typeof roles)[number], string> = {
  viewer: 'sees everything of the team',
  developer: 'also changes sandboxes, templates, volumes, secrets',
  admin: 'also decides about members, API keys, webhooks',
};

/** Makes an invitation, and shows its link once. */
export function Invite({ onClose }: { onClose: () => void }) {
  const [role, setRole] = useState<(typeof roles)[number]>('developer');
  const [note, setNote] = useState('');
  const [link, setLink] = useState<string | null>(null);
  const create = useChange<{ path: string }>(null, ['/invitations']);
  if (link !== null) return <ShownOnce title="It makes one member, within 72 hours" text={link} onClose={onClose} />;
  return (
    <Dialog
      title="Invite somebody"
      onClose={onClose}
      onSubmit={() =>
        create.mutate({
          method: 'POST',
          path: '/invitations',
          body: { role, note },
          then: ({ path }) => setLink(`${location.origin}${path}`),
        })
      }
    >
      <label className="field">
        <span>For whom, in your words</span>
        <input value={note} maxLength={200} onChange={event => setNote(event.target.value)} />
      </label>
      <fieldset className="stack" style={{ gap: 8 }}>
        <legend>Role</legend>
        {roles.map(one => (
          <label key={one} className="check">
            <input type="radio" name="role" checked={role === one} onChange={() => setRole(one)} />
            <span>
              {one} <span className="muted">{may[one]}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <DialogFooter action="Make the link" busy={create.isPending} onClose={onClose} />
    </Dialog>
  );
}
