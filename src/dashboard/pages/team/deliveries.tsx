import type { Webhook, WebhookDelivery } from '../../../protocol/api/webhook.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { Ago, Badge } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { RoleButton } from '../../parts/role-button.tsx';

const everyMs = 3_000;
const tones = { pending: 'warn', delivered: 'ok', dead: 'danger' } as const;

/** What was sent to a webhook and how it was taken. */
export function Deliveries({ of: { id, name } }: { of: Webhook }) {
  const path = `/events/webhooks/${id}/deliveries`;
  const deliveries = useRead<WebhookDelivery[]>(path, { every: everyMs });
  const redeliver = useChange('It is sent again', ['/events/webhooks']);
  return (
    <Card title={`Deliveries to ${name}`}>
      <Loaded of={deliveries}>
        {rows => (
          <Table
            label="Deliveries"
            rows={rows}
            keyOf={({ eventId }) => eventId}
            empty="Nothing was sent yet"
            columns={[
              { name: 'State', of: ({ state }) => <Badge tone={tones[state]}>{state}</Badge> },
              { name: 'Event', of: ({ type }) => type.replace('.lifecycle.', ' ') },
              { name: 'About', of: ({ subject }) => <span className="mono">{subject}</span> },
              { name: 'Tries', end: true, of: ({ attempts }) => attempts },
              {
                name: 'Answer',
                of: ({ lastStatus, lastError }) => (
                  <span className="muted">{lastError ?? (lastStatus === null ? '–' : `HTTP ${lastStatus}`)}</span>
                ),
              },
              { name: 'When', of: ({ finishedAt, nextAttemptAt }) => <Ago at={finishedAt ?? nextAttemptAt} /> },
              {
                name: ' ',
                end: true,
                of: ({ eventId, state }) => (
                  <RoleButton
                    least="admin"
                    className="button tiny"
                    disabled={state === 'pending' || redeliver.isPending}
                    onClick={() => redeliver.mutate({ method: 'POST', path: `${path}/${eventId}/redeliver` })}
                  >
                    Send again
                  </RoleButton>
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}
