import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { Secret } from '../../../protocol/api/secret.ts';
import { useChange } from '../../api/hooks.ts';
import { usePages } from '../../api/pages.ts';
import { Ago, Empty, Name } from '../../parts/bits.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { Page } from '../../parts/page.tsx';
import { Paged } from '../../parts/rows/paged.tsx';
import { Table } from '../../parts/table.tsx';
import { RoleButton } from '../../parts/role-button.tsx';

/** The secrets of a team. Their values go in and never come out. */
export function Secrets() {
  const secrets = usePages<Secret>('/secrets');
  /** The secret that gets a value; without an ID, a new one. */
  const [editing, setEditing] = useState<{ secretID?: string; name: string } | null>(null);
  return (
    <Page
      title="Secrets"
      about="Values that header rules put into requests, so that they never enter a sandbox"
      actions={
        <RoleButton least="developer" className="button primary" onClick={() => setEditing({ name: '' })}>
          <Plus size={15} /> New secret
        </RoleButton>
      }
    >
      <Paged of={secrets}>
        {rows => (
          <Table
            label="Secrets"
            rows={rows}
            keyOf={({ secretID }) => secretID}
            empty={
              <Empty title="No secrets yet">
                <p>A rule of a sandbox's network names a secret, and the platform sends its value along.</p>
              </Empty>
            }
            columns={[
              { name: 'Name', of: ({ name }) => <Name className="mono" text={name} /> },
              { name: 'Version', end: true, of: ({ currentVersion }) => currentVersion },
              { name: 'Changed', of: ({ updatedAt }) => <Ago at={updatedAt} /> },
              { name: 'Created', of: ({ createdAt }) => <Ago at={createdAt} /> },
              {
                name: ' ',
                end: true,
                of: ({ secretID, name }) => (
                  <span className="row" style={{ justifyContent: 'flex-end' }}>
                    <RoleButton
                      least="developer"
                      className="button tiny"
                      onClick={() => setEditing({ secretID, name })}
                    >
                      New value
                    </RoleButton>
                    <DeleteButton least="developer" what={name} path={`/secrets/${secretID}`} stale={['/secrets']}>
                      Rules that name it send nothing in its place.
                    </DeleteButton>
                  </span>
                ),
              },
            ]}
          />
        )}
      </Paged>
      {editing && <SecretDialog of={editing} onClose={() => setEditing(null)} />}
    </Page>
  );
}

function SecretDialog({
  of: { secretID, name },
  onClose,
}: {
  of: { secretID?: string; name: string };
  onClose: () => void;
}) {
  const [newName, setName] = useState(name);
  const [value, setValue] = useState('');
  const save = useChange('Secret kept', ['/secrets']);
  const submit = () =>
    save.mutate({
      method: 'POST',
      path: secretID === undefined ? '/secrets' : `/secrets/${secretID}`,
      body: secretID === undefined ? { name: newName, value } : { value },
      then: onClose,
    });
  return (
    <Dialog title={secretID === undefined ? 'New secret' : `New value of ${name}`} onClose={onClose} onSubmit={submit}>
      {secretID === undefined && (
        <label className="field">
          <span>Name: letters, digits, “-” and “_”</span>
          <input required value={newName} onChange={event => setName(event.target.value)} />
        </label>
      )}
      <label className="field">
        <span>Value</span>
        <input
          type="password"
          autoComplete="off"
          required
          value={value}
          onChange={event => setValue(event.target.value)}
        />
      </label>
      <DialogFooter action="Keep" busy={save.isPending} onClose={onClose} />
    </Dialog>
  );
}
