import { Link } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { AdminTeam } from '../../../protocol/api/team.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { Ago, Badge } from '../../parts/bits.tsx';
import { Confirm, Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { Limits } from './limits.tsx';
import { Users } from './users.tsx';

/** The installation's teams with their limits, and the people. */
export function Teams() {
  const teams = useRead<AdminTeam[]>('/admin/teams', { personal: true });
  const [making, setMaking] = useState(false);
  const [limited, setLimited] = useState<AdminTeam | null>(null);
  const change = useChange('Changed', ['/admin/teams'], true);
  return (
    <Page
      title="Teams and users"
      actions={
        <button type="button" className="button primary" onClick={() => setMaking(true)}>
          <Plus size={15} /> New team
        </button>
      }
    >
      <Card title="Teams">
        <Loaded of={teams}>
          {rows => (
            <Table
              label="Teams"
              rows={rows}
              keyOf={({ teamID }) => teamID}
              empty="There is no team"
              columns={[
                {
                  name: 'Team',
                  of: ({ name, slug }) => (
                    <Link to="/sandboxes" search={{ team: slug }}>
                      {name}
                    </Link>
                  ),
                },
                { name: 'Namespace', of: ({ slug }) => <span className="mono">{slug}</span> },
                {
                  name: 'Access',
                  of: ({ banned, blocked }) => (
                    <Badge tone={banned ? 'danger' : blocked ? 'warn' : 'ok'}>
                      {banned ? 'banned' : blocked ? 'may read and delete' : 'open'}
                    </Badge>
                  ),
                },
                { name: 'Made', of: ({ createdAt }) => <Ago at={createdAt} /> },
                {
                  name: ' ',
                  end: true,
                  of: team => (
                    <TeamActions
                      team={team}
                      onLimits={() => setLimited(team)}
                      onChange={body => change.mutate({ method: 'PATCH', path: `/admin/teams/${team.teamID}`, body })}
                    />
                  ),
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Users teams={teams.data ?? []} />
      {making && <NewTeam onClose={() => setMaking(false)} />}
      {limited && <Limits of={limited} onClose={() => setLimited(null)} />}
    </Page>
  );
}

type TeamActionsProps = { team: AdminTeam; onLimits: () => void; onChange: (body: { blocked: boolean }) => void };

function TeamActions({ team, onLimits, onChange }: TeamActionsProps) {
  const [isAsking, setAsking] = useState(false);
  const { name, blocked } = team;
  return (
    <span className="row" style={{ justifyContent: 'flex-end', flexWrap: 'nowrap' }}>
      <button type="button" className="button tiny" aria-label={`Limits of ${name}`} onClick={onLimits}>
        Limits
      </button>
      <button
        type="button"
        className="button tiny"
        aria-label={`${blocked ? 'Unblock' : 'Block'} ${name}`}
        onClick={() => (blocked ? onChange({ blocked: false }) : setAsking(true))}
      >
        {blocked ? 'Unblock' : 'Block'}
      </button>
      {isAsking && (
        <Confirm
          title={`Block ${name}?`}
          action="Block"
          onClose={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            onChange({ blocked: true });
          }}
        >
          <p className="muted">It may read and delete from then on, and neither start nor change anything.</p>
        </Confirm>
      )}
    </span>
  );
}

function NewTeam({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [slug, setSlug] = useState('');
  const create = useChange('Team made', ['/admin/teams'], true);
  return (
    <Dialog
      title="New team"
      onClose={onClose}
      onSubmit={() => create.mutate({ method: 'POST', path: '/admin/teams', body: { name, slug }, then: onClose })}
    >
      <label className="field">
        <span>Name</span>
        <input required value={name} onChange={event => setName(event.target.value)} />
      </label>
      <label className="field">
        <span>Namespace of its templates: lowercase letters, digits, “-” and “_”; it never changes</span>
        <input required pattern="[a-z0-9_\-]{1,64}" value={slug} onChange={event => setSlug(event.target.value)} />
      </label>
      <DialogFooter action="Make" busy={create.isPending} onClose={onClose} />
    </Dialog>
  );
}
