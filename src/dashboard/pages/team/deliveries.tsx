import type { Webhook, WebhookDelivery } from '../../../protocol/api/webhook.ts';
import { useChange } from '../../api/hooks.ts';
import { usePages } from '../../api/pages.ts';
import { Ago, Badge } from '../../parts/bits.tsx';
import { Card } from '../../parts/page.tsx';
import { Paged } from '../../parts/rows/paged.tsx';
import { Table } from '../../parts/table.tsx';
import { RoleButton } from '../../parts/role-button.tsx';

const everyMs = 3_000;
const tones = { pending: 'warn', delivered: 'ok', dead: 'danger' } as const;

/** New deliveries push older ones on to the next page, which may bring them again. */
const eachOnce = (rows: WebhookDelivery[]) => [...new Map(rows.map(row => [row.eventId, row])).values()];

/** What was sent to a webhook, and the receiver's response. */
export function Deliveries({ of: { id, name } }: { of: Webhook }) {
  const path = `/events/webhooks/${id}/deliveries`;
  const deliveries = usePages<WebhookDelivery>(path, { byOffset: true, every: everyMs });
  const redeliver = useChange('It is sent again', ['/events/webhooks']);
  return (
    <Card title={`Deliveries to ${name}`}>
      <Paged of={deliveries}>
        {rows => (
          <Table
            label="Deliveries"
            rows={eachOnce(rows)}
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
      </Paged>
    </Card>
  );
}
