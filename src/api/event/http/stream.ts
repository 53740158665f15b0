import { Type } from '@sinclair/typebox';
import { int32, int64 } from '../../../protocol/api/primitives.ts';
import type { Db } from '../../database/db.ts';
import { route } from '../../http/route.ts';
import { streamBounds, streamEvents } from '../rules/stream.ts';

/** `GET /events/stream` */
export const streamEventsRoute = route({
  operationId: 'streamEvents',
  method: 'GET',
  path: '/events/stream',
  summary: 'Stream lifecycle events of the team as they happen',
  auth: 'team',
  query: Type.Object({
    after: Type.Optional(
      int64({ minimum: 0, description: 'The `id` of the last event that was seen; default: what happens from now on' }),
    ),
    seconds: Type.Optional(
      int32({
        minimum: 0,
        maximum: streamBounds.secondsMax,
        default: streamBounds.secondsMax,
        description: 'When it ends',
      }),
    ),
  }),
  responses: {
    200: {
      description:
        'Server-sent events: `ready`, then each LifecycleEvent with its place as `id`. The stream ends after a ' +
        'minute, and when the credential is revoked; go on with `after`',
      binary: true,
      contentType: 'text/event-stream',
    },
  },
  async handle({ db, stopping }: { db: Db; stopping: AbortSignal }, { caller, query, signal, isStillLetIn }) {
    const ends = AbortSignal.any([signal, stopping]);
    const events = streamEvents(
      db,
      caller.team.teamId,
      { after: query.after ?? null, seconds: query.seconds ?? streamBounds.secondsMax, isStillLetIn },
      ends,
    );
    const encoder = new TextEncoder();
    const stream = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value, done } = await events.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      async cancel() {
        await events.return(undefined);
      },
    });
    return { status: 200, stream, headers: { 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' } };
  },
});
