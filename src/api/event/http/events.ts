import { Type } from '@sinclair/typebox';
import { LifecycleEvent, eventBounds, eventSubjects, eventTypes } from '../../../protocol/api/event.ts';
import { int32, oneOf } from '../../../protocol/api/primitives.ts';
import { eventsOf } from '../rules/events.ts';
import { route } from '../../http/route.ts';
import type { Db } from '../../database/db.ts';

const page = {
  offset: Type.Optional(int32({ minimum: 0, default: 0, description: 'Events to skip' })),
  limit: Type.Optional(int32({ minimum: 1, maximum: eventBounds.pageMax, default: eventBounds.pageDefault })),
  orderAsc: Type.Optional(Type.Boolean({ default: false, description: 'Oldest first' })),
  types: Type.Optional(Type.Array(oneOf(eventTypes), { description: 'Only these' })),
};
const responses = { 200: { description: 'Events', schema: Type.Array(LifecycleEvent) } } as const;

/** `GET /events` */
export const listEventsRoute = route({
  operationId: 'listEvents',
  method: 'GET',
  path: '/events',
  summary: 'List lifecycle events of the team, newest first',
  auth: 'team',
  long: true,
  query: Type.Object({
    ...page,
    kind: Type.Optional(oneOf(eventSubjects)),
    subjectID: Type.Optional(Type.String({ description: 'Only of the one with this ID' })),
  }),
  responses,
  async handle({ db }: { db: Db }, { caller, query }) {
    const { kind, subjectID, types, ...rest } = query;
    const filter = {
      ...(kind !== undefined && { kind }),
      ...(subjectID !== undefined && { subjectId: subjectID }),
      ...(types && { types }),
    };
    return { status: 200, body: await eventsOf(db, caller.team, filter, rest) };
  },
});

/** `GET /events/sandboxes` */
export const listSandboxEventsRoute = route({
  operationId: 'listTeamSandboxEvents',
  method: 'GET',
  path: '/events/sandboxes',
  summary: 'List sandbox events of the team, newest first',
  auth: 'team',
  long: true,
  query: Type.Object(page),
  responses,
  async handle({ db }: { db: Db }, { caller, query }) {
    const { types, ...rest } = query;
    return { status: 200, body: await eventsOf(db, caller.team, { kind: 'sandbox', ...(types && { types }) }, rest) };
  },
});

/** `GET /events/sandboxes/{sandboxID}` */
export const readSandboxEventsRoute = route({
  operationId: 'listSandboxEvents',
  method: 'GET',
  path: '/events/sandboxes/{sandboxID}',
  summary: 'List events of a sandbox, newest first; empty where the team has none with this ID',
  auth: 'team',
  long: true,
  params: Type.Object({ sandboxID: Type.String() }),
  query: Type.Object(page),
  responses,
  async handle({ db }: { db: Db }, { caller, params, query }) {
    const { types, ...rest } = query;
    return {
      status: 200,
      body: await eventsOf(
        db,
        caller.team,
        { kind: 'sandbox', subjectId: params.sandboxID, ...(types && { types }) },
        rest,
      ),
    };
  },
});
