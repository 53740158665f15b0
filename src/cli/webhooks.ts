import { jsonOption, misuse, parseArguments } from './terminal/arguments.ts';
import type { Command } from './terminal/command.ts';
import type { PlatformRequest } from './connection/platform-request.ts';
import { confirm, jsonText, show } from './terminal/table.ts';

type Webhook = { id: string; name: string; url: string; enabled: boolean; failing: boolean; events: string[] };
type Delivery = { eventId: string; state: string; attempts: number; lastStatus: number | null };

const root = '/events/webhooks';
const pathOf = (id: string | undefined) => `${root}/${encodeURIComponent(id ?? '')}`;
const stateOf = ({ enabled, failing }: Webhook) => (!enabled ? 'off' : failing ? 'failing' : 'on');

/** `atoll webhook …`: who is notified of events of sandboxes. */
export function webhookCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'webhook create',
      usage: '--event TYPE... [--name NAME] [--json] URL',
      summary: 'Has events sent to a URL, and prints the ID and, this once, the secret that signs them',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(
          args,
          { event: { type: 'string', multiple: true }, name: { type: 'string' }, json: { type: 'boolean' } },
          ['URL'],
        );
        const [url = ''] = positionals;
        if (!values.event) throw misuse('--event is missing: the type of events that are sent, once for each');
        const webhook = (await request('POST', root, {
          name: values.name ?? URL.parse(url)?.host ?? 'webhook',
          url,
          events: values.event,
        })) as Webhook & { signatureSecret: string };
        terminal.out(values.json ? jsonText(webhook) : `${webhook.id}\n${webhook.signatureSecret}\n`);
        return 0;
      },
    },
    {
      name: 'webhook list',
      usage: '[--json]',
      summary: 'Lists the webhooks',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const webhooks = (await request('GET', root)) as Webhook[];
        const rows = webhooks.map(item => [item.id, item.name, stateOf(item), item.url, item.events.join(', ')]);
        show(terminal, values.json, webhooks, [['ID', 'NAME', 'STATE', 'URL', 'EVENTS'], ...rows]);
        return 0;
      },
    },
    ...deliveryCommands(request),
    ...['enable', 'disable'].map((word): Command => ({
      name: `webhook ${word}`,
      usage: '[--json] WEBHOOK_ID',
      summary: word === 'enable' ? 'Sends events to a webhook again' : 'Sends a webhook no more events',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['WEBHOOK_ID']);
        const webhook = await request('PATCH', pathOf(positionals[0]), { enabled: word === 'enable' });
        confirm(terminal, values.json, webhook, word === 'enable' ? 'On.' : 'Off.');
        return 0;
      },
    })),
    {
      name: 'webhook delete',
      usage: '[--json] WEBHOOK_ID',
      summary: 'Deletes a webhook',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['WEBHOOK_ID']);
        await request('DELETE', pathOf(positionals[0]));
        confirm(terminal, values.json, { id: positionals[0] }, 'Deleted.');
        return 0;
      },
    },
  ];
}

function deliveryCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'webhook deliveries',
      usage: '[--json] WEBHOOK_ID',
      summary: 'Lists the latest deliveries of a webhook and how they went',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['WEBHOOK_ID']);
        const deliveries = (await request('GET', `${pathOf(positionals[0])}/deliveries`)) as Delivery[];
        const rows = deliveries.map(item => [
          item.eventId,
          item.state,
          String(item.attempts),
          String(item.lastStatus ?? ''),
        ]);
        show(terminal, values.json, deliveries, [['EVENT', 'STATE', 'TRIES', 'STATUS'], ...rows]);
        return 0;
      },
    },
    {
      name: 'webhook redeliver',
      usage: '[--json] WEBHOOK_ID EVENT_ID',
      summary: 'Sends an event to a webhook once more',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['WEBHOOK_ID', 'EVENT_ID']);
        const [id, event = ''] = positionals;
        await request('POST', `${pathOf(id)}/deliveries/${encodeURIComponent(event)}/redeliver`);
        confirm(terminal, values.json, { webhookID: id, eventID: event }, 'It is sent.');
        return 0;
      },
    },
  ];
}
