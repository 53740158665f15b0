import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { AdminTeam, AdminUser } from '../../../protocol/api/team.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { Ago, Badge, Empty } from '../../parts/bits.tsx';
import { Confirm, Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { ShownOnce } from '../../parts/shown-once.tsx';
import { Table } from '../../parts/table.tsx';

/** The people of the installation; each signs in with a link that is made here. */
export function Users({ teams }: { teams: AdminTeam[] }) {
  const users = useRead<AdminUser[]>('/admin/users', { personal: true });
  const [making, setMaking] = useState(false);
  const [link, setLink] = useState<string | null>(null);
  const signIn = useChange<{ path: string }>(null, [], true);
  const change = useChange('Changed', ['/admin/users'], true);
  const join = useChange('Joined', ['/admin/users'], true);
  return (
    <Card
      title="Users"
      actions={
        <button type="button" className="button tiny" onClick={() => setMaking(true)}>
          <Plus size={14} /> New user
        </button>
      }
    >
      <Loaded of={users}>
        {rows => (
          <Table
            label="Users"
            rows={rows}
            keyOf={({ userID }) => userID}
            empty={
              <Empty title="No users yet">
                <p>Make one, add them to a team, and send them a link that signs in.</p>
              </Empty>
            }
            columns={[
              { name: 'Name', of: ({ name }) => name },
              { name: 'E-mail', of: ({ email }) => email ?? <span className="muted">none</span> },
              {
                name: 'Rights',
                of: ({ operator }) => <Badge tone={operator ? 'warn' : 'idle'}>{operator ? 'operator' : 'user'}</Badge>,
              },
              { name: 'Made', of: ({ createdAt }) => <Ago at={createdAt} /> },
              {
                name: ' ',
                end: true,
                of: user => (
                  <UserActions
                    user={user}
                    teams={teams}
                    onJoin={teamID =>
                      join.mutate({ method: 'PUT', path: `/admin/teams/${teamID}/members/${user.userID}` })
                    }
                    onChange={body => change.mutate({ method: 'PATCH', path: `/admin/users/${user.userID}`, body })}
                    onSignIn={() =>
                      signIn.mutate({
                        method: 'POST',
                        path: '/admin/sign-in-links',
                        body: { userID: user.userID },
                        then: ({ path }) => setLink(`${location.origin}${path}`),
                      })
                    }
                  />
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {making && <NewUser onClose={() => setMaking(false)} />}
      {link !== null && (
        <ShownOnce title="It signs in once, within 15 minutes" text={link} onClose={() => setLink(null)} />
      )}
    </Card>
  );
}

type UserActionsProps = {
  user: AdminUser;
  teams: AdminTeam[];
  onJoin: (teamID: string) => void;
  onChange: (body: { operator: boolean }) => void;
  onSignIn: () => void;
};

function UserActions({ user: { name, operator }, teams, onJoin, onChange, onSignIn }: UserActionsProps) {
  const [isJoining, setJoining] = useState(false);
  const [isAsking, setAsking] = useState(false);
  return (
    <span className="row" style={{ justifyContent: 'flex-end', flexWrap: 'nowrap' }}>
      <button
        type="button"
        className="button tiny"
        aria-label={`Add ${name} to a team`}
        disabled={teams.length === 0}
        onClick={() => setJoining(true)}
      >
        Add to a team
      </button>
      {isJoining && <JoinDialog name={name} teams={teams} onJoin={onJoin} onClose={() => setJoining(false)} />}
      <button
        type="button"
        className="button tiny"
        aria-label={operator ? `Make ${name} an operator no more` : `Make ${name} an operator`}
        onClick={() => setAsking(true)}
      >
        {operator ? 'Not operator' : 'Make operator'}
      </button>
      {isAsking && (
        <Confirm
          title={operator ? `Make ${name} an operator no more?` : `Make ${name} an operator?`}
          action={operator ? 'Take it away' : 'Make operator'}
          onClose={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            onChange({ operator: !operator });
          }}
        >
          <p className="muted">An operator may do everything for any team, and with the machines.</p>
        </Confirm>
      )}
      <button type="button" className="button tiny" aria-label={`Sign-in link for ${name}`} onClick={onSignIn}>
        Sign-in link
      </button>
    </span>
  );
}

type JoinProps = Pick<UserActionsProps, 'teams' | 'onJoin'> & { name: string; onClose: () => void };

/** Asks which team to add somebody to. */
function JoinDialog({ name, teams, onJoin, onClose }: JoinProps) {
  const [chosen, setChosen] = useState(teams[0]?.teamID ?? '');
  const team = teams.find(({ teamID }) => teamID === chosen) ?? teams[0];
  return (
    <Dialog
      title={`Add ${name} to a team`}
      onClose={onClose}
      onSubmit={() => {
        onClose();
        if (team) onJoin(team.teamID);
      }}
    >
      <label className="field">
        <span>Team</span>
        <select value={team?.teamID} onChange={event => setChosen(event.target.value)}>
          {teams.map(({ teamID, name }) => (
            <option key={teamID} value={teamID}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <DialogFooter action={`Add to ${team?.name ?? ''}`} onClose={onClose} />
    </Dialog>
  );
}

function NewUser({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [email, setEmail] = useState('');
  const create = useChange('User made', ['/admin/users'], true);
  const body = { name, ...(email !== '' && { email }) };
  return (
    <Dialog
      title="New user"
      onClose={onClose}
      onSubmit={() => create.mutate({ method: 'POST', path: '/admin/users', body, then: onClose })}
    >
      <label className="field">
        <span>Name</span>
        <input required value={name} onChange={event => setName(event.target.value)} />
      </label>
      <label className="field">
        <span>E-mail (may be left out)</span>
        <input type="email" value={email} onChange={event => setEmail(event.target.value)} />
      </label>
      <DialogFooter action="Make" busy={create.isPending} onClose={onClose} />
    </Dialog>
  );
}
