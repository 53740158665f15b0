import type { Selectable } from 'kysely';
import type { EventType } from '../../../protocol/api/event.ts';
import type { Db } from '../../database/db.ts';
import type { WebhookTable } from '../../database/schema.ts';
import type { WebhookRecord } from '../record.ts';

/** Writes a new webhook. */
export async function insertWebhook(db: Db, webhook: WebhookRecord): Promise<void> {
  await db
    .insertInto('webhooks')
    .values({
      webhook_id: webhook.webhookId,
      team_id: webhook.teamId,
      created_at_us: webhook.createdAtUs,
      failing: webhook.failing ? 1 : 0,
      updated_at_us: webhook.updatedAtUs,
      name: webhook.name,
      url: webhook.url,
      enabled: webhook.enabled ? 1 : 0,
      types_text: typesText(webhook.types),
      sealed_secret: webhook.sealedSecret,
    })
    .execute();
}

/** What may change in a webhook. */
export type WebhookChange = Partial<Pick<WebhookRecord, 'name' | 'url' | 'enabled' | 'types' | 'sealedSecret'>>;

/** Changes the given members of a webhook, and answers it; null when it is gone. */
export async function updateWebhookRow(
  db: Db,
  webhookId: string,
  change: WebhookChange,
  updatedAtUs: number,
): Promise<WebhookRecord | null> {
  const row = await db
    .updateTable('webhooks')
    .set({ ...columnsOf(change), updated_at_us: updatedAtUs })
    .where('webhook_id', '=', webhookId)
    .returningAll()
    .executeTakeFirst();
  return row ? webhookOfRow(row) : null;
}

/** How many webhooks a team has. */
export async function countWebhooks(db: Db, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('webhooks')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The webhook of a team with this ID, or null. */
export async function findWebhook(db: Db, teamId: string, webhookId: string): Promise<WebhookRecord | null> {
  const row = await db
    .selectFrom('webhooks')
    .selectAll()
    .where('team_id', '=', teamId)
    .where('webhook_id', '=', webhookId)
    .executeTakeFirst();
  return row ? webhookOfRow(row) : null;
}

/** A team's webhooks, the oldest first. */
export async function listWebhooks(db: Db, teamId: string): Promise<WebhookRecord[]> {
  const rows = await db
    .selectFrom('webhooks')
    .selectAll()
    .where('team_id', '=', teamId)
    .orderBy('created_at_us')
    .orderBy('webhook_id')
    .execute();
  return rows.map(webhookOfRow);
}

/** Removes a webhook with all its deliveries. */
export async function deleteWebhook(db: Db, webhookId: string): Promise<boolean> {
  const { numDeletedRows } = await db.deleteFrom('webhooks').where('webhook_id', '=', webhookId).executeTakeFirst();
  return numDeletedRows > 0n;
}

/** The columns of `webhooks`, for kept queries. */
export const webhookColumns = [
  ...(['webhook_id', 'team_id', 'name', 'url', 'enabled', 'types_text'] as const),
  ...(['sealed_secret', 'failing', 'created_at_us', 'updated_at_us'] as const),
];

/** The record of a row. */
export function webhookOfRow(row: Selectable<WebhookTable>): WebhookRecord {
  return {
    webhookId: row.webhook_id,
    teamId: row.team_id,
    name: row.name,
    url: row.url,
    enabled: row.enabled === 1,
    types: row.types_text.split(',').filter(type => type !== '') as EventType[],
    sealedSecret: row.sealed_secret,
    failing: row.failing === 1,
    createdAtUs: row.created_at_us,
    updatedAtUs: row.updated_at_us,
  };
}

function columnsOf({ name, url, enabled, types, sealedSecret }: WebhookChange) {
  return {
    ...(name !== undefined && { name }),
    ...(url !== undefined && { url }),
    ...(enabled !== undefined && { enabled: enabled ? (1 as const) : (0 as const) }),
    ...(types !== undefined && { types_text: typesText(types) }),
    ...(sealedSecret !== undefined && { sealed_secret: sealedSecret }),
  };
}

function typesText(types: readonly EventType[]): string {
  return `,${types.join(',')},`;
}
