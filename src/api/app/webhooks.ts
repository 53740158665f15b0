import { randomBytes } from 'node:crypto';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { seal, sealKey, unseal } from '../../base/seal.ts';
import { webhookBounds } from '../../protocol/api/webhook.ts';
import type { DeliveryState, NewWebhook, WebhookUpdate } from '../../protocol/api/webhook.ts';
import type { TeamRecord } from '../store/team.ts';
import { listDeliveries, renewDelivery } from '../store/webhook-deliveries.ts';
import type { DeliveryRecord } from '../store/webhook-deliveries.ts';
import { countWebhooks, deleteWebhook, findWebhook, insertWebhook, listWebhooks, updateWebhookRow } from '../store/webhooks.ts';
import type { WebhookChange, WebhookRecord } from '../store/webhooks.ts';
import type { App } from './context.ts';
import { isUuid } from './template-reference.ts';
import { checkWebhookUrl } from './webhook-url.ts';

const secretBytes = 32;

/** Registers a webhook. `madeSecret` where the caller gave none. Throws `invalid`, `rate_limited` (the team has as many as allowed). */
export async function createWebhook(app: App, team: TeamRecord, input: NewWebhook): Promise<{ webhook: WebhookRecord; madeSecret: string | null }> {
  const url = checkWebhookUrl(input.url, app.webhooks.allowPrivateAddresses);
  if ((await countWebhooks(app.store.db, team.teamId)) >= webhookBounds.webhooksMax) {
    throw new AtollError('rate_limited', `The team has ${webhookBounds.webhooksMax} webhooks, which is the most: delete one first`);
  }
  const madeSecret = input.signatureSecret === undefined ? `whsec_${randomBytes(secretBytes).toString('base64')}` : null;
  const webhookId = newUuid();
  const nowUs = app.clock();
  const webhook: WebhookRecord = {
    webhookId,
    teamId: team.teamId,
    name: input.name,
    url,
    enabled: input.enabled ?? true,
    types: [...new Set(input.events)],
    sealedSecret: sealSecret(app, team.teamId, webhookId, input.signatureSecret ?? madeSecret ?? ''),
    failing: false,
    createdAtUs: nowUs,
    updatedAtUs: nowUs,
  };
  await insertWebhook(app.store.db, webhook);
  return { webhook, madeSecret };
}

/** Throws `not_found`. */
export async function readWebhook(app: App, team: TeamRecord, webhookId: string): Promise<WebhookRecord> {
  const webhook = isUuid(webhookId) ? await findWebhook(app.store.db, team.teamId, webhookId.toLowerCase()) : null;
  if (!webhook) throw webhookNotFound(webhookId);
  return webhook;
}

export async function webhooksOf(app: App, team: TeamRecord): Promise<WebhookRecord[]> {
  return listWebhooks(app.store.db, team.teamId);
}

/** Replaces what is given of a webhook; the rest stays. What waits to be delivered goes to the new URL. Throws `invalid`, `not_found`. */
export async function updateWebhook(app: App, team: TeamRecord, webhookId: string, update: WebhookUpdate): Promise<{ before: WebhookRecord; after: WebhookRecord }> {
  const before = await readWebhook(app, team, webhookId);
  const { name, url, events, enabled, signatureSecret } = update;
  const change: WebhookChange = {
    ...(name !== undefined && { name }),
    ...(url !== undefined && { url: checkWebhookUrl(url, app.webhooks.allowPrivateAddresses) }),
    ...(events !== undefined && { types: [...new Set(events)] }),
    ...(enabled !== undefined && { enabled }),
    ...(signatureSecret !== undefined && { sealedSecret: sealSecret(app, team.teamId, before.webhookId, signatureSecret) }),
  };
  const after = await updateWebhookRow(app.store.db, before.webhookId, change, app.clock());
  if (!after) throw webhookNotFound(webhookId);
  return { before, after };
}

/** Throws `not_found`. */
export async function removeWebhook(app: App, team: TeamRecord, webhookId: string): Promise<WebhookRecord> {
  const webhook = await readWebhook(app, team, webhookId);
  if (!(await deleteWebhook(app.store.db, webhook.webhookId))) throw webhookNotFound(webhookId);
  return webhook;
}

/** How deliveries of a webhook went, newest first. Throws `not_found`. */
export async function deliveriesOf(
  app: App,
  team: TeamRecord,
  webhookId: string,
  query: { state?: DeliveryState; offset: number; limit: number },
): Promise<DeliveryRecord[]> {
  const webhook = await readWebhook(app, team, webhookId);
  const { state, ...page } = query;
  return listDeliveries(app.store.db, webhook.webhookId, { ...(state !== undefined && { state }) }, page);
}

/** Delivers once more what was delivered or given up, with all its tries. Throws `not_found`, `conflict` where it is pending. */
export async function redeliver(app: App, team: TeamRecord, webhookId: string, eventId: string): Promise<void> {
  const webhook = await readWebhook(app, team, webhookId);
  const [delivery] = await listDeliveries(app.store.db, webhook.webhookId, { eventId }, { offset: 0, limit: 1 });
  if (!delivery) throw new AtollError('not_found', `Webhook "${webhookId}" has no delivery of event "${eventId}"`);
  if (!(await renewDelivery(app.store.db, delivery, app.clock()))) throw new AtollError('conflict', `Event "${eventId}" is being delivered already`);
}

/** What deliveries of a webhook are signed with, for the dispatcher and for nothing else: no route answers it. */
export function webhookSecret(app: App, webhook: WebhookRecord): string {
  return unseal(keyOf(app), webhook.sealedSecret, `${webhook.teamId}/${webhook.webhookId}`);
}

function sealSecret(app: App, teamId: string, webhookId: string, secret: string): string {
  return seal(keyOf(app), secret, `${teamId}/${webhookId}`);
}

function keyOf(app: App): Uint8Array {
  return sealKey(app.seed, 'secrets of webhooks');
}

function webhookNotFound(webhookId: string): AtollError {
  return new AtollError('not_found', `Webhook "${webhookId}" was not found`);
}
