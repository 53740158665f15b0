import type { Role } from '../../../protocol/api/member.ts';
import { useRead } from '../../api/hooks.ts';
import { Ago, Badge } from '../../parts/bits.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

type Invitation = { invitationID: string; role: Role; note: string; createdAt: string; expiresAt: string };

/** Invitations that nobody has accepted yet. */
export function Invitations() {
  const invitations = useRead<Invitation[]>('/invitations');
  return (
    <Card title="Invitations">
      <Loaded of={invitations}>
        {rows => (
          <Table
            label="Invitations"
            rows={rows}
            keyOf={({ invitationID }) => invitationID}
            empty="Nobody is invited"
            columns={[
              { name: 'For', of: ({ note }) => note || <span className="muted">not said</span> },
              { name: 'Role', of: ({ role }) => <Badge tone="idle">{role}</Badge> },
              { name: 'Made', of: ({ createdAt }) => <Ago at={createdAt} /> },
              { name: 'Ends', of: ({ expiresAt }) => <Ago at={expiresAt} /> },
              {
                name: ' ',
                end: true,
                of: ({ invitationID, note }) => (
                  <DeleteButton
                    what={`the invitation${note && ` for ${note}`}`}
                    action="Take back"
                    path={`/invitations/${invitationID}`}
                    stale={['/invitations']}
                  />
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}
