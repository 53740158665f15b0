import type { DeliveryState } from '../../../protocol/api/webhook.ts';
import type { Selectable } from 'kysely';
import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import type { WebhookTable } from '../../database/schema.ts';
import { webhookColumns, webhookOfRow } from './webhooks.ts';
import type { DeliveryRecord, DeliveryRef, WebhookRecord } from '../record.ts';

/** The enabled webhooks with something to send now. */
export async function webhooksDue(db: Db, nowUs: number): Promise<WebhookRecord[]> {
  return (await due(db, { nowUs })).map(webhookOfRow);
}

const due = prepared<{ nowUs: number }, Selectable<WebhookTable>>((db, parameter) =>
  db
    .selectFrom('webhooks')
    .select(webhookColumns)
    .where('enabled', '=', 1)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('webhook_deliveries')
          .select('sequence')
          .whereRef('webhook_deliveries.webhook_id', '=', 'webhooks.webhook_id')
          .where('state', '=', 'pending')
          .where('due_at_us', '<=', parameter('nowUs')),
      ),
    ),
);

/** Due deliveries of a webhook in which those whose turn it is are searched. */
const dueLookedAtMax = 1000;

/** Due deliveries of a webhook that are the oldest pending ones of their subject: later ones of the subject wait. */
export async function dueHeads(db: Db, webhookId: string, nowUs: number, limit: number): Promise<number[]> {
  const rows = await db
    .selectFrom(({ selectFrom }) =>
      selectFrom('webhook_deliveries')
        .select(['sequence', 'subject', 'due_at_us'])
        .where('webhook_id', '=', webhookId)
        .where('state', '=', 'pending')
        .where('due_at_us', '<=', nowUs)
        .orderBy('due_at_us')
        .orderBy('sequence')
        .limit(dueLookedAtMax)
        .as('head'),
    )
    .select('head.sequence')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('webhook_deliveries as earlier')
            .select('earlier.sequence')
            .where('earlier.webhook_id', '=', webhookId)
            .whereRef('earlier.subject', '=', 'head.subject')
            .where('earlier.state', '=', 'pending')
            .whereRef('earlier.sequence', '<', 'head.sequence'),
        ),
      ),
    )
    .orderBy('head.due_at_us')
    .orderBy('head.sequence')
    .limit(limit)
    .execute();
  return rows.map(row => row.sequence);
}

/** A delivery that this process works on, with the event that it delivers. */
export type ClaimedDelivery = DeliveryRef & { subject: string; eventId: string; body: string; attempts: number };

/**
 * Takes a due delivery for one attempt. Until `untilUs` no other process does; if this one dies meanwhile, the next
 * takes it.
 */
export async function claimDelivery(
  db: Db,
  { webhookId, sequence }: DeliveryRef,
  nowUs: number,
  untilUs: number,
): Promise<ClaimedDelivery | null> {
  const claimed = await db
    .updateTable('webhook_deliveries')
    .set(update => ({ claimed: 1, due_at_us: untilUs, attempts: update('attempts', '+', 1) }))
    .where('webhook_id', '=', webhookId)
    .where('sequence', '=', sequence)
    .where('state', '=', 'pending')
    .where('due_at_us', '<=', nowUs)
    .returning(['attempts', 'subject'])
    .executeTakeFirst();
  if (!claimed) return null;
  const event = await db
    .selectFrom('events')
    .select(['event_id', 'body_json'])
    .where('sequence', '=', sequence)
    .executeTakeFirst();
  return event
    ? {
        webhookId,
        sequence,
        subject: claimed.subject,
        eventId: event.event_id,
        body: event.body_json,
        attempts: claimed.attempts,
      }
    : null;
}

/** Releases the claims of an earlier process that died. Call it only where no other process can be at work. */
export async function releaseClaims(db: Db, nowUs: number): Promise<void> {
  await db
    .updateTable('webhook_deliveries')
    .set({ claimed: 0, due_at_us: nowUs })
    .where('state', '=', 'pending')
    .where('claimed', '=', 1)
    .execute();
}

/** Releases a delivery whose attempt was not finished: it does not count as an attempt. */
export async function returnDelivery(
  db: Db,
  { webhookId, sequence, attempts }: Pick<ClaimedDelivery, keyof DeliveryRef | 'attempts'>,
  nowUs: number,
): Promise<void> {
  await db
    .updateTable('webhook_deliveries')
    .set({ claimed: 0, due_at_us: nowUs, attempts: attempts - 1 })
    .where('webhook_id', '=', webhookId)
    .where('sequence', '=', sequence)
    .where('state', '=', 'pending')
    .where('claimed', '=', 1)
    .where('attempts', '=', attempts)
    .execute();
}

/** The outcome of an attempt, and when the next one is due. */
type Outcome = { state: DeliveryState; status: number | null; error: string | null; dueAtUs: number; nowUs: number };

/**
 * Records the outcome of an attempt in the delivery and its webhook. Changes nothing if the attempt's time had run out
 * and another one has begun, which shows in a higher `attempts`: that one then records its own outcome.
 */
export async function settleDelivery(
  db: Db,
  { webhookId, sequence, subject, attempts }: Pick<ClaimedDelivery, keyof DeliveryRef | 'subject' | 'attempts'>,
  outcome: Outcome,
): Promise<void> {
  const { state, status, error, dueAtUs, nowUs } = outcome;
  const { numUpdatedRows } = await db
    .updateTable('webhook_deliveries')
    .set({
      state,
      claimed: 0,
      due_at_us: dueAtUs,
      last_status: status,
      last_error: error,
      finished_at_us: state === 'pending' ? null : nowUs,
    })
    .where('webhook_id', '=', webhookId)
    .where('sequence', '=', sequence)
    .where('claimed', '=', 1)
    .where('attempts', '=', attempts)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return;
  // Later deliveries of the subject are not due before it: otherwise all of them would be checked again and again.
  if (state === 'pending') {
    await db
      .updateTable('webhook_deliveries')
      .set({ due_at_us: dueAtUs })
      .where('webhook_id', '=', webhookId)
      .where('subject', '=', subject)
      .where('state', '=', 'pending')
      .where('sequence', '>', sequence)
      .where('due_at_us', '<', dueAtUs)
      .execute();
  }
  const failing = state === 'delivered' ? 0 : 1;
  await db
    .updateTable('webhooks')
    .set({ failing })
    .where('webhook_id', '=', webhookId)
    .where('failing', '!=', failing)
    .execute();
}

/** Deliveries of a webhook, newest first. */
export async function listDeliveries(
  db: Db,
  webhookId: string,
  filter: { state?: DeliveryState; eventId?: string },
  page: { offset: number; limit: number },
): Promise<DeliveryRecord[]> {
  let query = db
    .selectFrom('webhook_deliveries')
    .innerJoin('events', 'events.sequence', 'webhook_deliveries.sequence')
    .selectAll('webhook_deliveries')
    .select(['events.event_id', 'events.type'])
    .where('webhook_id', '=', webhookId);
  if (filter.state !== undefined) query = query.where('state', '=', filter.state);
  if (filter.eventId !== undefined) query = query.where('events.event_id', '=', filter.eventId);
  const rows = await query
    .orderBy('webhook_deliveries.sequence', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return rows.map(row => ({
    webhookId: row.webhook_id,
    sequence: row.sequence,
    eventId: row.event_id,
    type: row.type,
    subject: row.subject,
    state: row.state,
    attempts: row.attempts,
    dueAtUs: row.due_at_us,
    lastStatus: row.last_status,
    lastError: row.last_error,
    finishedAtUs: row.finished_at_us,
  }));
}

/** Restarts a delivery that has ended. False when it is pending. */
export async function renewDelivery(db: Db, { webhookId, sequence }: DeliveryRef, nowUs: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('webhook_deliveries')
    .set({ state: 'pending', claimed: 0, attempts: 0, due_at_us: nowUs, finished_at_us: null })
    .where('webhook_id', '=', webhookId)
    .where('sequence', '=', sequence)
    .where('state', '!=', 'pending')
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
