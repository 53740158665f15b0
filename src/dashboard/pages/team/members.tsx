import { Pencil, Plus } from 'lucide-react';
import { useState } from 'react';
import type { Role } from '../../../protocol/api/member.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { useMay } from '../../api/session.tsx';
import { Ago, Badge, Empty } from '../../parts/bits.tsx';
import { Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { Invitations } from './invitations.tsx';
import { Invite } from './invite.tsx';
import { RoleFields } from './role-fields.tsx';

type Member = { userID: string; name: string; email: string | null; role: Role; since: string };

/** The people of a team, and those invited to it. */
export function Members() {
  const members = useRead<Member[]>('/members');
  const mayChange = useMay('admin');
  const change = useChange('Changed', ['/members']);
  const [inviting, setInviting] = useState(false);
  return (
    <Page
      title="Members"
      about="Viewers see, developers change, admins also decide who does"
      actions={
        <button
          type="button"
          className="button primary"
          disabled={!mayChange}
          title={mayChange ? undefined : 'Admins of the team invite'}
          onClick={() => setInviting(true)}
        >
          <Plus size={15} /> Invite
        </button>
      }
    >
      <Loaded of={members}>
        {rows => (
          <Table
            label="Members"
            rows={rows}
            keyOf={({ userID }) => userID}
            empty={
              <Empty title="Nobody yet">
                <p>Whoever is invited makes an account and is a member from then on.</p>
              </Empty>
            }
            columns={[
              { name: 'Name', of: ({ name }) => name },
              { name: 'E-mail', of: ({ email }) => email ?? <span className="muted">none</span> },
              {
                name: 'Role',
                of: ({ userID, name, role }) =>
                  mayChange ? (
                    <MemberRole
                      name={name}
                      role={role}
                      onChange={role => change.mutate({ method: 'PATCH', path: `/members/${userID}`, body: { role } })}
                    />
                  ) : (
                    <Badge tone="idle">{role}</Badge>
                  ),
              },
              { name: 'Since', of: ({ since }) => <Ago at={since} /> },
              {
                name: ' ',
                end: true,
                of: ({ userID, name }) =>
                  mayChange && (
                    <DeleteButton what={name} action="Remove" path={`/members/${userID}`} stale={['/members']}>
                      The account stays; it does nothing for this team any more. API keys that were made stay too.
                    </DeleteButton>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
      {mayChange && <Invitations />}
      {inviting && <Invite onClose={() => setInviting(false)} />}
    </Page>
  );
}

type MemberRoleProps = { name: string; role: Role; onChange: (role: Role) => void };

/** The role of a member, and a way to change it after a question: in a select, a value could be chosen in passing. */
function MemberRole({ name, role, onChange }: MemberRoleProps) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <button
        type="button"
        className="button bare tiny"
        aria-label={`Role of ${name}: ${role}`}
        onClick={() => setAsking(true)}
      >
        {role} <Pencil size={13} aria-hidden />
      </button>
      {isAsking && <RoleDialog name={name} role={role} onChange={onChange} onClose={() => setAsking(false)} />}
    </>
  );
}

function RoleDialog({ name, role, onChange, onClose }: MemberRoleProps & { onClose: () => void }) {
  const [next, setNext] = useState(role);
  return (
    <Dialog
      title={`Role of ${name}`}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        if (next !== role) onChange(next);
      }}
    >
      <RoleFields role={next} onChange={setNext} />
      <DialogFooter action={next === role ? `Stay ${role}` : `Make ${name} ${next}`} onClose={onClose} />
    </Dialog>
  );
}
