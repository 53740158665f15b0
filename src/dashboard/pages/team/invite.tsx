import { useState } from 'react';
import type { Role } from '../../../protocol/api/member.ts';
import { useChange } from '../../api/hooks.ts';
import { Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { ShownOnce } from '../../parts/shown-once.tsx';
import { RoleFields } from './role-fields.tsx';

/** Makes an invitation, and shows its link once. */
export function Invite({ onClose }: { onClose: () => void }) {
  const [role, setRole] = useState<Role>('developer');
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
      <RoleFields role={role} onChange={setRole} />
      <DialogFooter action="Make the link" busy={create.isPending} onClose={onClose} />
    </Dialog>
  );
}
