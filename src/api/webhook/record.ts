import type { EventType } from '../../protocol/api/event.ts';
import type { DeliveryState } from '../../protocol/api/webhook.ts';

/** A webhook of a team. Its signing secret is sealed. */
export type WebhookRecord = {
  webhookId: string;
  teamId: string;
  name: string;
  url: string;
  enabled: boolean;
  types: EventType[];
  sealedSecret: string;
  /** The last attempt failed. */
  failing: boolean;
  createdAtUs: number;
  updatedAtUs: number;
};

/** One event for one webhook. */
export type DeliveryRef = { webhookId: string; sequence: number };

/** A delivery of an event to a webhook. Times are microseconds since the epoch. */
export type DeliveryRecord = DeliveryRef & {
  eventId: string;
  type: EventType;
  subject: string;
  state: DeliveryState;
  attempts: number;
  dueAtUs: number;
  lastStatus: number | null;
  lastError: string | null;
  finishedAtUs: number | null;
};
