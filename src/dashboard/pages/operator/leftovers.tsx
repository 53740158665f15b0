import type { Orphans } from '../../../protocol/api/orphan.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { useViewer } from '../../api/session.tsx';
import { Ago, Copy } from '../../parts/bits.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

const stale = ['/admin/orphans', '/v2/sandboxes', '/volumes'];

/** What nodes keep but the database does not know. None of it is deleted until somebody says so. */
export function Leftovers() {
  const orphans = useRead<Orphans>('/admin/orphans', { personal: true });
  return (
    <Page title="Left over" about="What nodes keep that the database does not know">
      <Loaded of={orphans}>
        {({ sandboxes, volumes, unansweredNodeIDs }) => (
          <>
            {unansweredNodeIDs && (
              <div className="note warn" role="status">
                There may be more on nodes that did not answer: {unansweredNodeIDs.join(', ')}
              </div>
            )}
            <Card title="Sandboxes">
              <SandboxesLeft sandboxes={sandboxes} />
            </Card>
            <Card title="Volumes">
              <VolumesLeft volumes={volumes} />
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function SandboxesLeft({ sandboxes }: Pick<Orphans, 'sandboxes'>) {
  const { team } = useViewer();
  const adopt = useChange('Adopted', stale, true);
  return (
    <Table
      label="Sandboxes left over"
      rows={sandboxes}
      keyOf={({ sandboxID }) => sandboxID}
      empty="None"
      columns={[
        { name: 'Sandbox', of: ({ sandboxID }) => <Copy text={sandboxID} /> },
        { name: 'Node', of: ({ nodeID }) => <span className="mono">{nodeID}</span> },
        { name: 'Since', of: ({ setAsideAt }) => <Ago at={setAsideAt} /> },
        { name: 'Why', of: ({ reason }) => reason },
        {
          name: ' ',
          end: true,
          of: ({ sandboxID, templateID }) => (
            <span className="row" style={{ justifyContent: 'flex-end' }}>
              <button
                type="button"
                className="button tiny"
                disabled={templateID === undefined || !team}
                onClick={() =>
                  adopt.mutate({
                    method: 'POST',
                    path: `/admin/orphans/sandboxes/${sandboxID}/adopt`,
                    body: { teamID: team?.teamID },
                  })
                }
              >
                Give to {team?.name}
              </button>
              <DeleteButton what={sandboxID} path={`/admin/orphans/sandboxes/${sandboxID}`} stale={stale} personal />
            </span>
          ),
        },
      ]}
    />
  );
}

function VolumesLeft({ volumes }: Pick<Orphans, 'volumes'>) {
  return (
    <Table
      label="Volumes left over"
      rows={volumes}
      keyOf={({ volumeID }) => volumeID}
      empty="None"
      columns={[
        { name: 'Volume', of: ({ volumeID }) => <Copy text={volumeID} /> },
        { name: 'Node', of: ({ nodeID }) => <span className="mono">{nodeID}</span> },
        { name: 'Made', of: ({ createdAt }) => <Ago at={createdAt} /> },
        {
          name: ' ',
          end: true,
          of: ({ volumeID }) => (
            <DeleteButton what={volumeID} path={`/admin/orphans/volumes/${volumeID}`} stale={stale} personal />
          ),
        },
      ]}
    />
  );
}
