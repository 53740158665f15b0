import { Type } from '@sinclair/typebox';
import { LifecycleEvent } from '../../../protocol/api/event.ts';
import type { Db } from '../../database/db.ts';
import { placeOf, streamAnswer, streamHeaders, streamQuery, streamReply } from '../../http/event-stream.ts';
import type { OpenStreams } from '../../http/open-streams.ts';
import { route } from '../../http/route.ts';
import { eventSource, eventStreamBounds } from '../rules/stream.ts';

/** `GET /events/stream` */
export const streamEventsRoute = route({
  operationId: 'streamEvents',
  method: 'GET',
  path: '/events/stream',
  summary: 'Stream lifecycle events of the team as they happen',
  auth: 'team',
  query: Type.Object(streamQuery('what happens from now on')),
  headers: streamHeaders,
  responses: streamAnswer(LifecycleEvent, ''),
  async handle(deps: { db: Db; streams: OpenStreams; stopping: AbortSignal }, input) {
    const source = await eventSource(deps.db, input.caller.team.teamId, placeOf(input));
    return streamReply(deps, input, source, { pollMs: eventStreamBounds.pollMs, textOf: body => body });
  },
});
