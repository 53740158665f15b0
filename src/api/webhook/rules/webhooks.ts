import { randomBytes } from 'node:crypto';
import { AtollError } from '../../../base/error.ts';
import { newUuid, isUuid } from '../../../base/id.ts';
import { encrypt, encryptionKey, decrypt } from '../../../base/crypto/encryption.ts';
import { webhookBounds } from '../../../protocol/api/webhook.ts';
import type { DeliveryState, NewWebhook, WebhookUpdate } from '../../../protocol/api/webhook.ts';
import { listDeliveries, renewDelivery } from '../store/deliveries.ts';
import {
  countWebhooks,
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
  updateWebhookRow,
} from '../store/webhooks.ts';
import type { WebhookChange } from '../store/webhooks.ts';
import { checkWebhookUrl } from './url.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { DeliveryRecord, WebhookRecord } from '../record.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { lockTeam } from '../../team/store/lock.ts';
import type { Clock } from '../../../base/clock.ts';

/** Dependencies of a change of a webhook. */
export type WebhookDeps = { clock: Clock; db: Db; seed: Uint8Array; webhooks: { allowPrivateAddresses: boolean } };

const secretBytes = 32;

/**
 * Registers a webhook. `madeSecret` is there where the caller gave none. Throws `invalid`, `rate_limited` (the team has
 * as many as allowed).
 */
export async function createWebhook(
  { clock, db, seed, webhooks }: WebhookDeps,
  team: TeamRecord,
  input: NewWebhook,
): Promise<{ webhook: WebhookRecord; madeSecret: string | null }> {
  const url = checkWebhookUrl(input.url, webhooks.allowPrivateAddresses);
  const madeSecret =
    input.signatureSecret === undefined ? `whsec_${randomBytes(secretBytes).toString('base64')}` : null;
  const webhookId = newUuid();
  const nowUs = clock();
  const webhook: WebhookRecord = {
    webhookId,
    teamId: team.teamId,
    name: input.name,
    url,
    enabled: input.enabled ?? true,
    types: [...new Set(input.events)],
    sealedSecret: encryptSecret(seed, team.teamId, webhookId, input.signatureSecret ?? madeSecret ?? ''),
    failing: false,
    createdAtUs: nowUs,
    updatedAtUs: nowUs,
  };
  const { webhooksMax } = webhookBounds;
  await inTransaction(db, async db => {
    await lockTeam(db, team.teamId);
    if ((await countWebhooks(db, team.teamId)) >= webhooksMax)
      throw new AtollError('rate_limited', `The team has ${webhooksMax} webhooks, which is the most: delete one first`);
    await insertWebhook(db, webhook);
  });
  return { webhook, madeSecret };
}

/** Reads a webhook. Throws `not_found`. */
export async function readWebhook(db: Db, team: TeamRecord, webhookId: string): Promise<WebhookRecord> {
  const webhook = isUuid(webhookId) ? await findWebhook(db, team.teamId, webhookId.toLowerCase()) : null;
  if (!webhook) throw webhookNotFound(webhookId);
  return webhook;
}

/** A team's webhooks. */
export async function webhooksOf(db: Db, team: TeamRecord): Promise<WebhookRecord[]> {
  return listWebhooks(db, team.teamId);
}

/**
 * Replaces the given members of a webhook; the rest stays. Waiting deliveries go to the new URL. Throws `invalid`,
 * `not_found`.
 */
export async function updateWebhook(
  { clock, db, seed, webhooks }: WebhookDeps,
  team: TeamRecord,
  webhookId: string,
  update: WebhookUpdate,
): Promise<{ before: WebhookRecord; after: WebhookRecord }> {
  const before = await readWebhook(db, team, webhookId);
  const { name, url, events, enabled, signatureSecret } = update;
  const change: WebhookChange = {
    ...(name !== undefined && { name }),
    ...(url !== undefined && { url: checkWebhookUrl(url, webhooks.allowPrivateAddresses) }),
    ...(events !== undefined && { types: [...new Set(events)] }),
    ...(enabled !== undefined && { enabled }),
    ...(signatureSecret !== undefined && {
      sealedSecret: encryptSecret(seed, team.teamId, before.webhookId, signatureSecret),
    }),
  };
  const after = await updateWebhookRow(db, before.webhookId, change, clock());
  if (!after) throw webhookNotFound(webhookId);
  return { before, after };
}

/** Removes a webhook. Throws `not_found`. */
export async function removeWebhook(db: Db, team: TeamRecord, webhookId: string): Promise<WebhookRecord> {
  const webhook = await readWebhook(db, team, webhookId);
  if (!(await deleteWebhook(db, webhook.webhookId))) throw webhookNotFound(webhookId);
  return webhook;
}

/** The outcomes of a webhook's deliveries, newest first. Throws `not_found`. */
export async function deliveriesOf(
  db: Db,
  team: TeamRecord,
  webhookId: string,
  query: { state?: DeliveryState; offset: number; limit: number },
): Promise<DeliveryRecord[]> {
  const webhook = await readWebhook(db, team, webhookId);
  const { state, ...page } = query;
  return listDeliveries(db, webhook.webhookId, { ...(state !== undefined && { state }) }, page);
}

/**
 * Delivers again what was delivered or given up, with all attempts. Throws `not_found`, `conflict` where it is pending.
 */
export async function redeliver(
  { clock, db }: { clock: Clock; db: Db },
  team: TeamRecord,
  webhookId: string,
  eventId: string,
): Promise<void> {
  const webhook = await readWebhook(db, team, webhookId);
  const [delivery] = await listDeliveries(db, webhook.webhookId, { eventId }, { offset: 0, limit: 1 });
  if (!delivery) throw new AtollError('not_found', `Webhook "${webhookId}" has no delivery of event "${eventId}"`);
  if (!(await renewDelivery(db, delivery, clock())))
    throw new AtollError('conflict', `Event "${eventId}" is being delivered already`);
}

/** The secret that signs a webhook's deliveries, only for the dispatcher: no route answers it. */
export function webhookSecret(seed: Uint8Array, webhook: WebhookRecord): string {
  return decrypt(keyOf(seed), webhook.sealedSecret, `${webhook.teamId}/${webhook.webhookId}`);
}

function encryptSecret(seed: Uint8Array, teamId: string, webhookId: string, secret: string): string {
  return encrypt(keyOf(seed), secret, `${teamId}/${webhookId}`);
}

function keyOf(seed: Uint8Array): Uint8Array {
  return encryptionKey(seed, 'secrets of webhooks');
}

function webhookNotFound(webhookId: string): AtollError {
  return new AtollError('not_found', `Webhook "${webhookId}" was not found`);
}
