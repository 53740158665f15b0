import { Type } from '@sinclair/typebox';
import { eventBounds } from '../../protocol/api/event.ts';
import { int32, oneOf } from '../../protocol/api/primitives.ts';
import { CreatedWebhook, NewWebhook, Webhook, WebhookDelivery, WebhookUpdate, deliveryStates } from '../../protocol/api/webhook.ts';
import { formatTime } from '../../base/time.ts';
import { createWebhook, deliveriesOf, readWebhook, redeliver, removeWebhook, updateWebhook, webhooksOf } from '../app/webhooks.ts';
import type { DeliveryRecord } from '../store/webhook-deliveries.ts';
import type { WebhookRecord } from '../store/webhooks.ts';
import { route } from './route.ts';

const params = Type.Object({ webhookID: Type.String() });

export const createWebhookRoute = route({
  operationId: 'createWebhook',
  method: 'POST',
  path: '/events/webhooks',
  summary: 'Have events delivered to a URL',
  auth: 'team',
  noStore: true,
  body: NewWebhook,
  strict: true,
  responses: { 201: { description: 'The webhook', schema: CreatedWebhook } },
  async handle(app, { caller, body, note }) {
    const { webhook, madeSecret } = await createWebhook(app, caller.team, body);
    note({ target: `webhook:${webhook.webhookId}`, after: told(webhook) });
    return { status: 201, body: { ...webhookView(webhook), ...(madeSecret !== null && { signatureSecret: madeSecret }) } };
  },
});

export const listWebhooksRoute = route({
  operationId: 'listWebhooks',
  method: 'GET',
  path: '/events/webhooks',
  summary: 'The webhooks of the team',
  auth: 'team',
  responses: { 200: { description: 'Webhooks', schema: Type.Array(Webhook) } },
  async handle(app, { caller }) {
    return { status: 200, body: (await webhooksOf(app, caller.team)).map(webhookView) };
  },
});

export const readWebhookRoute = route({
  operationId: 'getWebhook',
  method: 'GET',
  path: '/events/webhooks/{webhookID}',
  summary: 'A webhook',
  auth: 'team',
  params,
  responses: { 200: { description: 'The webhook', schema: Webhook } },
  errors: [404],
  async handle(app, { caller, params }) {
    return { status: 200, body: webhookView(await readWebhook(app, caller.team, params.webhookID)) };
  },
});

export const updateWebhookRoute = route({
  operationId: 'updateWebhook',
  method: 'PATCH',
  path: '/events/webhooks/{webhookID}',
  summary: 'Change a webhook',
  auth: 'team',
  params,
  body: WebhookUpdate,
  strict: true,
  responses: { 200: { description: 'The webhook', schema: Webhook } },
  errors: [404],
  async handle(app, { caller, params, body, note }) {
    const { before, after } = await updateWebhook(app, caller.team, params.webhookID, body);
    note({ target: `webhook:${after.webhookId}`, before: told(before), after: { ...told(after), newSecret: body.signatureSecret !== undefined } });
    return { status: 200, body: webhookView(after) };
  },
});

export const deleteWebhookRoute = route({
  operationId: 'deleteWebhook',
  method: 'DELETE',
  path: '/events/webhooks/{webhookID}',
  summary: 'Delete a webhook and what waits to be delivered to it',
  auth: 'team',
  params,
  responses: { 200: { description: 'It is gone' } },
  errors: [404],
  async handle(app, { caller, params, note }) {
    const webhook = await removeWebhook(app, caller.team, params.webhookID);
    note({ target: `webhook:${webhook.webhookId}`, before: told(webhook) });
    return { status: 200 };
  },
});

export const listDeliveriesRoute = route({
  operationId: 'listWebhookDeliveries',
  method: 'GET',
  path: '/events/webhooks/{webhookID}/deliveries',
  summary: 'How deliveries of a webhook went, newest first',
  auth: 'team',
  params,
  query: Type.Object({
    state: Type.Optional(oneOf(deliveryStates)),
    offset: Type.Optional(int32({ minimum: 0, default: 0 })),
    limit: Type.Optional(int32({ minimum: 1, maximum: eventBounds.pageMax, default: eventBounds.pageMax })),
  }),
  responses: { 200: { description: 'Deliveries', schema: Type.Array(WebhookDelivery) } },
  errors: [404],
  async handle(app, { caller, params, query }) {
    const { state, offset = 0, limit = eventBounds.pageMax } = query;
    const deliveries = await deliveriesOf(app, caller.team, params.webhookID, { ...(state !== undefined && { state }), offset, limit });
    return { status: 200, body: deliveries.map(deliveryView) };
  },
});

export const redeliverRoute = route({
  operationId: 'redeliverWebhookEvent',
  method: 'POST',
  path: '/events/webhooks/{webhookID}/deliveries/{eventID}/redeliver',
  summary: 'Deliver an event once more, with all its tries',
  auth: 'team',
  params: Type.Object({ webhookID: Type.String(), eventID: Type.String() }),
  responses: { 202: { description: 'It is tried now' } },
  errors: [404, 409],
  async handle(app, { caller, params, note }) {
    await redeliver(app, caller.team, params.webhookID, params.eventID);
    note({ target: `webhook:${params.webhookID}`, after: { redelivered: params.eventID } });
    return { status: 202 };
  },
});

/** For the audit log: the query of a URL is often a credential. */
function told(webhook: WebhookRecord): Record<string, unknown> {
  const { origin, pathname } = new URL(webhook.url);
  return { name: webhook.name, url: origin + pathname, enabled: webhook.enabled, events: webhook.types };
}

function webhookView(webhook: WebhookRecord): Webhook {
  const { webhookId: id, teamId, name, url, enabled, types: events, failing } = webhook;
  return { id, teamId, name, url, enabled, events, failing, createdAt: formatTime(webhook.createdAtUs), updatedAt: formatTime(webhook.updatedAtUs) };
}

function deliveryView(delivery: DeliveryRecord): WebhookDelivery {
  const { eventId, type, subject, state, attempts, lastStatus, lastError } = delivery;
  return {
    eventId,
    type,
    subject,
    state,
    attempts,
    lastStatus,
    lastError,
    nextAttemptAt: state === 'pending' ? formatTime(delivery.dueAtUs) : null,
    finishedAt: delivery.finishedAtUs === null ? null : formatTime(delivery.finishedAtUs),
  };
}
