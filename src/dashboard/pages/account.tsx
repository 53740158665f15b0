import { useRead } from '../api/hooks.ts';
import { useViewer } from '../api/session.tsx';
import { Ago, Badge } from '../parts/bits.tsx';
import { DeleteButton } from '../parts/delete-button.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Card, Page } from '../parts/page.tsx';
import { browserName } from './browser-name.ts';
import { PasswordCard } from './password-card.tsx';
import { Table } from '../parts/table.tsx';
import { ExactTime } from '../parts/zone.tsx';

type ListedSession = {
  sessionID: string;
  current: boolean;
  createdAt: string;
  lastUsedAt: string;
  address: string;
  userAgent: string;
};

/** The signed-in user, and their other sessions. */
export function Account() {
  const { session, teams } = useViewer();
  const sessions = useRead<ListedSession[]>('/sessions', { personal: true });
  return (
    <Page title={session.user?.name ?? 'Operator'} about={session.user?.email ?? 'Whoever is root on the machine'}>
      <Card title="You">
        <dl className="facts body">
          <dt>Teams</dt>
          <dd>
            {teams.map(({ name, role }) => (role ? `${name} (${role})` : name)).join(', ') ||
              'none yet: the operator adds you to one'}
          </dd>
          <dt>May</dt>
          <dd>{session.operator ? 'everything that the operator may, for any team' : 'act for these teams'}</dd>
          <dt>Signed in until</dt>
          <dd>
            <ExactTime at={session.expiresAt} />, or 12 hours after the last request
          </dd>
        </dl>
      </Card>
      <PasswordCard />
      <Card title="Sessions">
        <Loaded of={sessions}>
          {rows => (
            <Table
              label="Sessions"
              rows={rows}
              keyOf={({ sessionID }) => sessionID}
              empty="There are none"
              columns={[
                {
                  name: 'From',
                  of: ({ address, current }) => (
                    <span className="row" style={{ flexWrap: 'nowrap' }}>
                      <span className="mono">{address || 'this machine'}</span>
                      {current && <Badge tone="ok">this one</Badge>}
                    </span>
                  ),
                },
                {
                  name: 'Browser',
                  of: ({ userAgent }) => (
                    <span className="cut muted" style={{ display: 'block', maxWidth: 380 }} title={userAgent}>
                      {browserName(userAgent)}
                    </span>
                  ),
                },
                { name: 'Begun', of: ({ createdAt }) => <Ago at={createdAt} /> },
                { name: 'Last used', of: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
                {
                  name: ' ',
                  end: true,
                  of: ({ sessionID, current }) => !current && <EndButton sessionId={sessionID} />,
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

const EndButton = ({ sessionId }: { sessionId: string }) => (
  <DeleteButton what="this session" action="End" path={`/sessions/${sessionId}`} stale={['/sessions']} personal />
);
