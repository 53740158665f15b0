import { Link } from '@tanstack/react-router';
import type { SnapshotInfo } from '../../../protocol/api/lifecycle.ts';
import { usePages } from '../../api/pages.ts';
import { Copy, Empty, Name } from '../../parts/bits.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Page } from '../../parts/page.tsx';
import { Paged } from '../../parts/rows/paged.tsx';
import { Table } from '../../parts/table.tsx';
import { useForbidden } from '../../parts/role-button.tsx';

/** The snapshots of a team, from which new sandboxes can start. */
export function Snapshots() {
  const forbidden = useForbidden('developer');
  const snapshots = usePages<SnapshotInfo>('/snapshots');
  return (
    <Page title="Snapshots" about="Files, and memory where it was kept, of a sandbox at one moment">
      <Paged of={snapshots}>
        {rows => (
          <Table
            label="Snapshots"
            rows={rows}
            keyOf={({ snapshotID }) => snapshotID}
            empty={
              <Empty title="No snapshots yet">
                <p>Take one on the page of a running sandbox. New sandboxes begin where it was taken.</p>
              </Empty>
            }
            columns={[
              {
                name: 'Snapshot',
                of: ({ snapshotID }) => (
                  <Copy text={snapshotID}>
                    <span className="mono cut name">{snapshotID}</span>
                  </Copy>
                ),
              },
              {
                name: 'Names',
                of: ({ names }) =>
                  names.length === 0 ? <span className="muted">none</span> : <Name text={names.join(', ')} />,
              },
              {
                name: ' ',
                end: true,
                of: ({ snapshotID }) => (
                  <span className="row" style={{ justifyContent: 'flex-end', flexWrap: 'nowrap' }}>
                    <Link
                      to="/sandboxes"
                      search={{ create: snapshotID }}
                      className="button tiny"
                      disabled={forbidden !== undefined}
                      title={forbidden}
                    >
                      Start from it
                    </Link>
                    <DeleteButton
                      least="developer"
                      what="this snapshot"
                      path={`/templates/${encodeURIComponent(snapshotID.split(':')[0] ?? '')}`}
                      stale={['/snapshots', '/templates']}
                    >
                      With every snapshot under the same name. They can’t be deleted while a sandbox that began from one
                      of them runs or is paused.
                    </DeleteButton>
                  </span>
                ),
              },
            ]}
          />
        )}
      </Paged>
    </Page>
  );
}
