import { Type } from '@sinclair/typebox';
import { LifecycleEvent } from '../../../protocol/api/event.ts';
import type { Db } from '../../database/db.ts';
import { placeOf, streamAnswer, streamHeaders, streamQuery, streamReply } from '../../http/event-stream.ts';
import type { OpenStreams } from '../../http/open-streams.ts';
import { route } from '../../http/route.ts';
import type { SandboxInTransition } from '../../sandbox/record.ts';
import { eventSource, eventStreamBounds } from '../rules/stream.ts';

/** `GET /events/stream` */
export const streamEventsRoute = route({
  operationId: 'streamEvents',
  method: 'GET',
  path: '/events/stream',
  summary: 'Stream lifecycle events of the team as they happen',
  auth: 'team',
  query: Type.Object({
    ...streamQuery('what happens from now on'),
    transitions: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Also tell which sandboxes are between two states: a message `transitions` with a list of `sandboxID` and ' +
          '`transition`, at the beginning and whenever it has changed',
      }),
    ),
  }),
  headers: streamHeaders,
  responses: streamAnswer(LifecycleEvent, ''),
  async handle(deps: { db: Db; streams: OpenStreams; stopping: AbortSignal }, input) {
    const source = await eventSource(deps.db, input.caller.team.teamId, {
      after: placeOf(input),
      viewOf: input.query.transitions ? transitionsView : undefined,
    });
    return streamReply(deps, input, source, { pollMs: eventStreamBounds.pollMs, textOf: body => body });
  },
});

const transitionsView = (all: SandboxInTransition[]) =>
  all.map(({ sandboxId, transition }) => ({ sandboxID: sandboxId, transition }));
