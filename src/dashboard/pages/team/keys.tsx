import { Link } from '@tanstack/react-router';
import { Pencil, Plus } from 'lucide-react';
import { useState } from 'react';
import type { TeamAPIKey } from '../../../protocol/api/team.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { useMay, useViewer } from '../../api/session.tsx';
import { Asked } from '../../parts/asked.tsx';
import { Ago, Empty } from '../../parts/bits.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';
import { ShownOnce } from '../../parts/shown-once.tsx';
import { Table } from '../../parts/table.tsx';
import { RoleButton } from '../../parts/role-button.tsx';

/** The keys with which programs act for a team. */
export function Keys() {
  const may = useMay('admin');
  const { session, team } = useViewer();
  const [naming, setNaming] = useState(false);
  const [made, setMade] = useState<string | null>(null);
  const create = useChange<{ key: string }>(null, ['/api-keys'], session.operator);
  // A member makes her own keys, the operator makes them for any team.
  const path = session.operator ? `/admin/teams/${team?.teamID}/api-keys` : '/api-keys';
  return (
    <Page
      title="API keys"
      about="Each lets a program act for the team"
      actions={
        <RoleButton least="admin" className="button primary" onClick={() => setNaming(true)}>
          <Plus size={15} /> New key
        </RoleButton>
      }
    >
      {may ? (
        <KeyTable />
      ) : (
        <div className="table-wrap">
          <Empty title="For admins">
            <p>Admins of the team see its keys and decide about them.</p>
          </Empty>
        </div>
      )}
      {naming && (
        <Asked
          title="New API key"
          label="Name: what it is for"
          type="text"
          action="Make"
          onClose={() => setNaming(false)}
          onDone={name => create.mutate({ method: 'POST', path, body: { name }, then: ({ key }) => setMade(key) })}
        />
      )}
      {made !== null && <ShownOnce title="The new API key" text={made} onClose={() => setMade(null)} />}
    </Page>
  );
}

function KeyTable() {
  const keys = useRead<TeamAPIKey[]>('/api-keys');
  return (
    <Loaded of={keys}>
      {rows => (
        <Table
          label="API keys"
          rows={rows}
          keyOf={({ id }) => id}
          empty={<Empty title="No keys yet" />}
          columns={[
            { name: 'Name', of: ({ name }) => name },
            {
              name: 'Key',
              of: ({ mask }) => (
                <span className="mono muted">
                  {mask.prefix}
                  {mask.maskedValuePrefix}…{mask.maskedValueSuffix}
                </span>
              ),
            },
            { name: 'Made by', of: ({ createdBy }) => <Maker of={createdBy} /> },
            { name: 'Made', of: ({ createdAt }) => <Ago at={createdAt} /> },
            { name: 'Last used', of: ({ lastUsed }) => <Ago at={lastUsed} /> },
            {
              name: 'Changed',
              of: ({ id, name }) => (
                <Link to="/audit" search={{ actor: id }} aria-label={`what it changed: ${name}`}>
                  what it changed
                </Link>
              ),
            },
            { name: ' ', end: true, of: key => <KeyActions of={key} /> },
          ]}
        />
      )}
    </Loaded>
  );
}

/** Who made a key. Not everybody has an e-mail address. */
function Maker({ of }: { of: TeamAPIKey['createdBy'] }) {
  if (!of) return <span className="muted">the platform</span>;
  return of.email ?? <span className="mono">{of.id}</span>;
}

function KeyActions({ of: { id, name } }: { of: TeamAPIKey }) {
  const change = useChange('Renamed', ['/api-keys']);
  const [renaming, setRenaming] = useState(false);
  const path = `/api-keys/${id}`;
  return (
    <>
      <RoleButton
        least="admin"
        className="button bare tiny"
        aria-label={`Rename ${name}`}
        onClick={() => setRenaming(true)}
      >
        <Pencil size={14} /> Rename
      </RoleButton>
      <DeleteButton least="admin" what={name} action="Revoke" path={path} stale={['/api-keys']}>
        Programs that use it are refused from the next request on.
      </DeleteButton>
      {renaming && (
        <Asked
          title={`Rename ${name}`}
          label="Name: what it is for"
          type="text"
          initial={name}
          required
          action="Rename"
          onClose={() => setRenaming(false)}
          onDone={text => change.mutate({ method: 'PATCH', path, body: { name: text } })}
        />
      )}
    </>
  );
}
