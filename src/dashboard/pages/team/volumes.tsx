import { Link } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { Volume, VolumesUse } from '../../../protocol/api/volume.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { Asked } from '../../parts/asked.tsx';
import { formatBytes, formatCount } from '../../format.ts';
import { Ago, Copy, Empty, Name, Taken } from '../../parts/bits.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { RoleButton } from '../../parts/role-button.tsx';

const everyMs = 30_000;

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
      <Loaded of={volumes}>{rows => <VolumeTable rows={rows} />}</Loaded>
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

function VolumeTable({ rows }: { rows: readonly Volume[] }) {
  const { data: use } = useRead<VolumesUse>('/volumes/use', { every: everyMs });
  const usedOf = (id: string): number | undefined => use?.volumes[id]?.usedBytes;
  return (
    <Table
      label="Volumes"
      file="volumes"
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
          text: ({ name }) => name,
          of: ({ name, volumeID }) => (
            <Link to="/volumes/$volumeId" params={{ volumeId: volumeID }}>
              <Name text={name} />
            </Link>
          ),
        },
        {
          name: 'Takes, of at most',
          text: ({ volumeID }) => usedOf(volumeID),
          of: ({ volumeID, sizeMB }) => <Room used={usedOf(volumeID)} max={sizeMB * 1024 ** 2} />,
        },
        {
          name: 'Sandboxes that have it',
          end: true,
          text: ({ sandboxCount }) => sandboxCount,
          of: ({ sandboxCount }) => formatCount(sandboxCount),
        },
        {
          name: 'Copied',
          text: ({ copiedAt }) => copiedAt,
          of: ({ copiedAt }) => (copiedAt === undefined ? <span className="muted">–</span> : <Ago at={copiedAt} />),
        },
        { name: 'ID', text: ({ volumeID }) => volumeID, of: ({ volumeID }) => <Copy text={volumeID} /> },
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
  );
}

/** The space that a volume takes; unknown while its machine is away. */
function Room({ used, max }: { used: number | undefined; max: number }) {
  const most = formatBytes(max);
  if (used === undefined) return <span className="muted">{most}</span>;
  return <Taken share={used / max} text={`${formatBytes(used)} of ${most}`} />;
}
