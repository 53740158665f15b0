import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { eventTypes } from './event.ts';
import { dateTime, int32, nullable, oneOf } from './primitives.ts';

/** Bounds of a team's webhooks. */
export const webhookBounds = {
  /** Webhooks of one team. */
  webhooksMax: 20,
  nameCharactersMax: 128,
  urlCharactersMax: 2048,
  secretCharactersMin: 16,
  secretCharactersMax: 256,
} as const;

const { nameCharactersMax, urlCharactersMax, secretCharactersMin, secretCharactersMax } = webhookBounds;

const name = Type.String({ minLength: 1, maxLength: nameCharactersMax });
const url = Type.String({ maxLength: urlCharactersMax, description: 'http: or https:, without user and password' });
const events = Type.Array(oneOf(eventTypes), { minItems: 1, description: 'Which events are delivered' });
const signatureSecret = Type.String({
  minLength: secretCharactersMin,
  maxLength: secretCharactersMax,
  description: 'What deliveries are signed with. Never returned',
});

/** Body of POST /events/webhooks. */
export const NewWebhook = Type.Object(
  {
    name,
    url,
    events,
    enabled: Type.Optional(Type.Boolean({ default: true })),
    signatureSecret: Type.Optional(signatureSecret),
  },
  { $id: 'NewWebhook' },
);
export type NewWebhook = Static<typeof NewWebhook>;

/** Body of a change of a webhook. Absent members stay as they are. */
export const WebhookUpdate = Type.Object(
  {
    name: Type.Optional(name),
    url: Type.Optional(url),
    events: Type.Optional(events),
    enabled: Type.Optional(Type.Boolean()),
    signatureSecret: Type.Optional(signatureSecret),
  },
  { $id: 'WebhookUpdate' },
);
export type WebhookUpdate = Static<typeof WebhookUpdate>;

const webhookMembers = {
  id: Type.String(),
  teamId: Type.String(),
  name: Type.String(),
  url: Type.String(),
  enabled: Type.Boolean(),
  events: Type.Array(Type.String()),
  failing: Type.Boolean({ description: 'The last try of a delivery failed' }),
  createdAt: dateTime(),
  updatedAt: dateTime(),
};

/** A webhook without its secret. */
export const Webhook = Type.Object(webhookMembers, { $id: 'Webhook' });
export type Webhook = Static<typeof Webhook>;

/** A webhook right after it was made. */
export const CreatedWebhook = Type.Object(
  {
    ...webhookMembers,
    signatureSecret: Type.Optional(
      Type.String({ description: 'Where none was given: the one that was made. Shown this once' }),
    ),
  },
  { $id: 'CreatedWebhook' },
);

/** `pending`: to be tried, for the first time or again. `dead`: given up after all tries. */
export const deliveryStates = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** One event on its way to one webhook. */
export const WebhookDelivery = Type.Object(
  {
    eventId: Type.String(),
    type: oneOf(eventTypes),
    subject: Type.String({ description: 'kind:ID of what the event is about' }),
    state: oneOf(deliveryStates),
    attempts: int32({ minimum: 0 }),
    lastStatus: nullable(int32({ description: 'What the receiver answered last' })),
    lastError: nullable(Type.String({ description: 'Why the last try failed' })),
    nextAttemptAt: nullable(dateTime()),
    finishedAt: nullable(dateTime()),
  },
  { $id: 'WebhookDelivery' },
);
export type WebhookDelivery = Static<typeof WebhookDelivery>;
