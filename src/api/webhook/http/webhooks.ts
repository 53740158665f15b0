import { Type } from '@sinclair/typebox';
import { eventBounds } from '../../../protocol/api/event.ts';
import { int32, oneOf } from '../../../protocol/api/primitives.ts';
import {
  CreatedWebhook,
  NewWebhook,
  Webhook,
  WebhookDelivery,
  WebhookUpdate,
  deliveryStates,
} from '../../../protocol/api/webhook.ts';
import type { Role } from '../../../protocol/api/member.ts';
import { formatTime } from '../../../base/time.ts';
import {
  createWebhook,
  deliveriesOf,
  readWebhook,
  redeliver,
  removeWebhook,
  updateWebhook,
  webhooksOf,
} from '../rules/webhooks.ts';
import { route } from '../../http/route.ts';
import type { DeliveryRecord, WebhookRecord } from '../record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { WebhookDeps } from '../rules/webhooks.ts';
import type { Db } from '../../database/db.ts';

const params = Type.Object({ webhookID: Type.String() });

/** `POST /events/webhooks` */
export const createWebhookRoute = route({
  operationId: 'createWebhook',
  method: 'POST',
  path: '/events/webhooks',
  summary: 'Create a webhook',
  auth: 'team',
  role: 'admin',
  noStore: true,
  body: NewWebhook,
  strict: true,
  responses: { 201: { description: 'The webhook', schema: CreatedWebhook } },
  async handle(deps: WebhookDeps, { caller, body, audit }) {
    const { webhook, madeSecret } = await createWebhook(deps, caller.team, body);
    audit({ target: `webhook:${webhook.webhookId}`, after: auditFactsOf(webhook) });
    return {
      status: 201,
      body: { ...webhookView(webhook), ...(madeSecret !== null && { signatureSecret: madeSecret }) },
    };
  },
});

/** `GET /events/webhooks` */
export const listWebhooksRoute = route({
  operationId: 'listWebhooks',
  method: 'GET',
  path: '/events/webhooks',
  summary: 'List the webhooks of the team',
  auth: 'team',
  long: true,
  responses: { 200: { description: 'Webhooks', schema: Type.Array(Webhook) } },
  async handle({ db }: { db: Db }, { caller }) {
    return { status: 200, body: (await webhooksOf(db, caller.team)).map(webhook => shownTo(caller, webhook)) };
  },
});

/** `GET /events/webhooks/{webhookID}` */
export const readWebhookRoute = route({
  operationId: 'getWebhook',
  method: 'GET',
  path: '/events/webhooks/{webhookID}',
  summary: 'Get a webhook',
  auth: 'team',
  params,
  responses: { 200: { description: 'The webhook', schema: Webhook } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params }) {
    return { status: 200, body: shownTo(caller, await readWebhook(db, caller.team, params.webhookID)) };
  },
});

/** `PATCH /events/webhooks/{webhookID}` */
export const updateWebhookRoute = route({
  operationId: 'updateWebhook',
  method: 'PATCH',
  path: '/events/webhooks/{webhookID}',
  summary: 'Update a webhook',
  auth: 'team',
  role: 'admin',
  params,
  body: WebhookUpdate,
  strict: true,
  responses: { 200: { description: 'The webhook', schema: Webhook } },
  errors: [404],
  async handle(deps: WebhookDeps, { caller, params, body, audit }) {
    const { before, after } = await updateWebhook(deps, caller.team, params.webhookID, body);
    audit({
      target: `webhook:${after.webhookId}`,
      before: auditFactsOf(before),
      after: {
        ...auditFactsOf(after),
        newUrl: after.url !== before.url,
        newSecret: body.signatureSecret !== undefined,
      },
    });
    return { status: 200, body: webhookView(after) };
  },
});

/** `DELETE /events/webhooks/{webhookID}` */
export const deleteWebhookRoute = route({
  operationId: 'deleteWebhook',
  method: 'DELETE',
  path: '/events/webhooks/{webhookID}',
  summary: 'Delete a webhook and its pending deliveries',
  auth: 'team',
  role: 'admin',
  params,
  responses: { 200: { description: 'It is gone' } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params, audit }) {
    const webhook = await removeWebhook(db, caller.team, params.webhookID);
    audit({ target: `webhook:${webhook.webhookId}`, before: auditFactsOf(webhook) });
    return { status: 200 };
  },
});

/** `GET /events/webhooks/{webhookID}/deliveries` */
export const listDeliveriesRoute = route({
  operationId: 'listWebhookDeliveries',
  method: 'GET',
  path: '/events/webhooks/{webhookID}/deliveries',
  summary: 'List the deliveries of a webhook, newest first',
  auth: 'team',
  long: true,
  params,
  query: Type.Object({
    state: Type.Optional(oneOf(deliveryStates)),
    offset: Type.Optional(int32({ minimum: 0, default: 0 })),
    limit: Type.Optional(int32({ minimum: 1, maximum: eventBounds.pageMax, default: eventBounds.pageMax })),
  }),
  responses: { 200: { description: 'Deliveries', schema: Type.Array(WebhookDelivery) } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params, query }) {
    const { state, offset = 0, limit = eventBounds.pageMax } = query;
    const deliveries = await deliveriesOf(db, caller.team, params.webhookID, {
      ...(state !== undefined && { state }),
      offset,
      limit,
    });
    return { status: 200, body: deliveries.map(deliveryView) };
  },
});

/** `POST /events/webhooks/{webhookID}/deliveries/{eventID}/redeliver` */
export const redeliverRoute = route({
  operationId: 'redeliverWebhookEvent',
  method: 'POST',
  path: '/events/webhooks/{webhookID}/deliveries/{eventID}/redeliver',
  summary: 'Redeliver an event',
  auth: 'team',
  role: 'admin',
  params: Type.Object({ webhookID: Type.String(), eventID: Type.String() }),
  responses: { 202: { description: 'It is tried now' } },
  errors: [404, 409],
  async handle(deps: { clock: Clock; db: Db }, { caller, params, audit }) {
    await redeliver(deps, caller.team, params.webhookID, params.eventID);
    audit({ target: `webhook:${params.webhookID}`, after: { redelivered: params.eventID } });
    return { status: 202 };
  },
});

/** For the audit log, which is kept for long and has other readers. */
function auditFactsOf(webhook: WebhookRecord): Record<string, unknown> {
  return { name: webhook.name, url: receiverOf(webhook.url), enabled: webhook.enabled, events: webhook.types };
}

/** Where deliveries go, without path and query: these are what receivers recognise senders by. */
function receiverOf(url: string): string {
  const { origin, href } = new URL(url);
  return href === `${origin}/` ? origin : `${origin}/***`;
}

/** The view for a member with read access: where deliveries go, but no credential. */
function shownTo({ role }: { role: Role }, webhook: WebhookRecord): Webhook {
  const view = webhookView(webhook);
  return role === 'viewer' ? { ...view, url: receiverOf(view.url) } : view;
}

function webhookView(webhook: WebhookRecord): Webhook {
  const { webhookId: id, teamId, name, url, enabled, types: events, failing } = webhook;
  return {
    id,
    teamId,
    name,
    url,
    enabled,
    events,
    failing,
    createdAt: formatTime(webhook.createdAtUs),
    updatedAt: formatTime(webhook.updatedAtUs),
  };
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
