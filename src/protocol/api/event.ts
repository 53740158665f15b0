import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, freeObject, nullable, oneOf } from './primitives.ts';

/** Everything that an event can say, by what it is about. */
export const eventTypes = [
  'sandbox.lifecycle.created',
  'sandbox.lifecycle.updated',
  'sandbox.lifecycle.paused',
  'sandbox.lifecycle.resumed',
  'sandbox.lifecycle.checkpointed',
  'sandbox.lifecycle.forked',
  'sandbox.lifecycle.disk_failed',
  'sandbox.lifecycle.killed',
  'build.lifecycle.created',
  'build.lifecycle.started',
  'build.lifecycle.ready',
  'build.lifecycle.failed',
  'volume.lifecycle.created',
  'volume.lifecycle.deleted',
] as const;
/** A type of event. */
export type EventType = (typeof eventTypes)[number];

/** Subjects of events. */
export const eventSubjects = ['sandbox', 'build', 'volume'] as const;
export type EventSubject = (typeof eventSubjects)[number];

/** Bounds of the events that are kept, and of one page of them. */
export const eventBounds = {
  /** For how long events are kept. */
  keptDays: 7,
  /** Events of one team; beyond, the oldest go. */
  perTeamMax: 100_000,
  /** Bytes of one event as JSON. A sandbox's metadata is left out where the event would be longer. */
  bodyBytesMax: 65_536,
  pageMax: 100,
  pageDefault: 10,
} as const;

/**
 * An event as lists show it and webhooks deliver it. Members have both spellings, because E2B's list uses one and its
 * deliveries the other. Members of other subjects are absent.
 */
export const LifecycleEvent = Type.Object(
  {
    version: Type.Literal('v2'),
    id: Type.String({ description: 'The same in every delivery of the event' }),
    type: oneOf(eventTypes),
    timestamp: dateTime(),
    eventData: nullable(freeObject()),
    event_data: nullable(freeObject()),
    event_category: Type.Literal('lifecycle'),
    event_label: Type.String(),
    sandboxId: Type.Optional(Type.String()),
    sandbox_id: Type.Optional(Type.String()),
    sandboxExecutionId: Type.Optional(Type.String()),
    sandbox_execution_id: Type.Optional(Type.String()),
    sandboxTemplateId: Type.Optional(Type.String()),
    sandbox_template_id: Type.Optional(Type.String()),
    sandboxBuildId: Type.Optional(Type.String()),
    sandbox_build_id: Type.Optional(Type.String()),
    sandboxTeamId: Type.Optional(Type.String()),
    sandbox_team_id: Type.Optional(Type.String()),
    teamId: Type.String(),
    subject: Type.Object({ kind: oneOf(eventSubjects), id: Type.String() }),
  },
  { $id: 'LifecycleEvent' },
);
export type LifecycleEvent = Static<typeof LifecycleEvent>;
