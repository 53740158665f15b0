import { Plus } from 'lucide-react';
import { useState } from 'react';
import { eventTypes } from '../../../protocol/api/event.ts';
import type { Webhook } from '../../../protocol/api/webhook.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { CodeTabs } from '../../code/code.tsx';
import { Badge, Empty, Name } from '../../parts/bits.tsx';
import { DeleteButton } from '../../parts/delete-button.tsx';
import { Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { ShownOnce } from '../../parts/shown-once.tsx';
import { Table } from '../../parts/table.tsx';
import { Deliveries } from './deliveries.tsx';
import { verifyCode } from './verify-code.ts';
import { RoleButton } from '../../parts/role-button.tsx';

/** Where events of a team are sent. */
export function Webhooks() {
  const webhooks = useRead<Webhook[]>('/events/webhooks');
  const [making, setMaking] = useState(false);
  const [opened, setOpened] = useState<string | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const update = useChange('Changed', ['/events/webhooks']);
  const shown = webhooks.data?.find(({ id }) => id === opened);
  return (
    <Page
      title="Webhooks"
      about="Addresses that get what happens, signed"
      actions={
        <RoleButton least="admin" className="button primary" onClick={() => setMaking(true)}>
          <Plus size={15} /> New webhook
        </RoleButton>
      }
    >
      <Loaded of={webhooks}>
        {rows => (
          <Table
            label="Webhooks"
            rows={rows}
            keyOf={({ id }) => id}
            empty={
              <Empty title="No webhooks yet">
                <p>Each event is sent at least once, those of one sandbox in their order.</p>
              </Empty>
            }
            columns={[
              {
                name: 'State',
                of: ({ enabled, failing }) => (
                  <Badge tone={!enabled ? 'idle' : failing ? 'danger' : 'ok'}>
                    {!enabled ? 'off' : failing ? 'failing' : 'on'}
                  </Badge>
                ),
              },
              {
                name: 'Name',
                of: webhook => (
                  <button type="button" className="linklike" onClick={() => setOpened(webhook.id)}>
                    <Name text={webhook.name} />
                  </button>
                ),
              },
              { name: 'Address', of: ({ url }) => <Name className="mono muted" text={url} /> },
              { name: 'Events', end: true, of: ({ events }) => events.length },
              {
                name: ' ',
                end: true,
                of: webhook => (
                  <WebhookActions
                    webhook={webhook}
                    onChange={body => update.mutate({ method: 'PATCH', path: `/events/webhooks/${webhook.id}`, body })}
                  />
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {shown && <Deliveries of={shown} />}
      <GenuineCard />
      {making && <NewWebhook onClose={() => setMaking(false)} onMade={setSecret} />}
      {secret !== null && (
        <ShownOnce title="What its deliveries are signed with" text={secret} onClose={() => setSecret(null)} />
      )}
    </Page>
  );
}

/** How a receiver tells genuine deliveries from other requests. */
function GenuineCard() {
  return (
    <Card title="Is a delivery genuine?">
      <div className="body stack">
        <p className="muted">
          Its headers sign it by the secret that was shown when the webhook was made. A receiver compares first:
        </p>
        <CodeTabs texts={verifyCode} />
      </div>
    </Card>
  );
}

type WebhookActionsProps = { webhook: Webhook; onChange: (body: { enabled: boolean }) => void };

function WebhookActions({ webhook: { id, name, enabled }, onChange }: WebhookActionsProps) {
  return (
    <span className="row" style={{ justifyContent: 'flex-end', flexWrap: 'nowrap' }}>
      <RoleButton least="admin" className="button tiny" onClick={() => onChange({ enabled: !enabled })}>
        {enabled ? 'Switch off' : 'Switch on'}
      </RoleButton>
      <DeleteButton least="admin" what={name} path={`/events/webhooks/${id}`} stale={['/events/webhooks']} />
    </span>
  );
}

function NewWebhook({ onClose, onMade }: { onClose: () => void; onMade: (secret: string | null) => void }) {
  const [name, setName] = useState('');
  const [url, setUrl] = useState('https://');
  const [events, setEvents] = useState<readonly string[]>(eventTypes);
  const create = useChange<{ signatureSecret?: string }>('Webhook made', ['/events/webhooks']);
  const submit = () =>
    create.mutate({
      method: 'POST',
      path: '/events/webhooks',
      body: { name, url, events },
      then: ({ signatureSecret }) => {
        onClose();
        onMade(signatureSecret ?? null);
      },
    });
  return (
    <Dialog title="New webhook" onClose={onClose} onSubmit={submit}>
      <label className="field">
        <span>Name</span>
        <input required value={name} onChange={event => setName(event.target.value)} />
      </label>
      <label className="field">
        <span>Address</span>
        <input type="url" required value={url} onChange={event => setUrl(event.target.value)} />
      </label>
      <fieldset className="stack" style={{ gap: 4, border: 0, padding: 0, margin: 0 }}>
        <legend style={{ fontWeight: 540, padding: 0 }}>Events</legend>
        {eventTypes.map(type => (
          <label key={type} className="check">
            <input
              type="checkbox"
              checked={events.includes(type)}
              onChange={event =>
                setEvents(event.target.checked ? [...events, type] : events.filter(one => one !== type))
              }
            />
            {type.replace('.lifecycle.', ' ')}
          </label>
        ))}
      </fieldset>
      <DialogFooter action="Make" busy={create.isPending || events.length === 0} onClose={onClose} />
    </Dialog>
  );
}
