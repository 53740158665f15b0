import { Link } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { Volume } from '../../../protocol/api/volume.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { Asked } from '../../parts/asked.tsx';
import { Copy, Empty } from '../../parts/bits.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { RoleButton } from '../../parts/role-button.tsx';

/** The volumes of a team, and what is in them. */
export function Volumes() {
  const volumes = useRead<Volume[]>('/volumes');
  const [naming, setNaming] = useState(false);
  const create = useChange('Volume created', ['/volumes']);
  return (
    <Page
      title="Volumes"
      about="File systems that sandboxes mount, and that outlive them"
      actions={
        <RoleButton least="developer" className="button primary" onClick={() => setNaming(true)}>
          <Plus size={15} /> New volume
        </RoleButton>
      }
    >
      <Loaded of={volumes}>
        {rows => (
          <Table
            label="Volumes"
            rows={rows}
            keyOf={({ volumeID }) => volumeID}
            empty={
              <Empty title="No volumes yet">
                <p>A volume keeps files when sandboxes end, and several sandboxes can share one.</p>
              </Empty>
            }
            columns={[
              {
                name: 'Name',
                of: ({ name, volumeID }) => (
                  <Link to="/volumes/$volumeId" params={{ volumeId: volumeID }}>
                    {name}
                  </Link>
                ),
              },
              { name: 'ID', of: ({ volumeID }) => <Copy text={volumeID} /> },
              {
                name: ' ',
                end: true,
                of: ({ name, volumeID }) => (
                  <DeleteButton least="developer" what={name} path={`/volumes/${volumeID}`} stale={['/volumes']}>
                    Everything in it goes. While a sandbox has it mounted, it is refused.
                  </DeleteButton>
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {naming && (
        <Asked
          title="New volume"
          label="Name: letters, digits, “-” and “_”"
          type="text"
          action="Create"
          onClose={() => setNaming(false)}
          onDone={name => create.mutate({ method: 'POST', path: '/volumes', body: { name } })}
        />
      )}
    </Page>
  );
}
