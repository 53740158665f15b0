import { Plus } from 'lucide-react';
import { useState } from 'react';
import { roles } from '../../../protocol/api/member.ts';
import type { Role } from '../../../protocol/api/member.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { useMay } from '../../api/session.tsx';
import { Ago, Badge, Empty } from '../../parts/bits.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { Invitations } from './invitations.tsx';
import { Invite } from './invite.tsx';

type Member = { userID: string; name: string; email: string | null; role: Role; since: string };

/** The people of a team, and who is invited into it. */
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
                    <RoleChoice
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

type RoleChoiceProps = { name: string; role: Role; onChange: (role: string) => void };

function RoleChoice({ name, role, onChange }: RoleChoiceProps) {
  return (
    <select aria-label={`Role of ${name}`} value={role} onChange={event => onChange(event.target.value)}>
      {roles.map(one => (
        <option key={one}>{one}</option>
      ))}
    </select>
  );
}
