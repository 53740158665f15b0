import { setTimeout as sleep } from 'node:timers/promises';
import { Type } from '@sinclair/typebox';
import type { TSchema } from '@sinclair/typebox';
import { int32, int64 } from '../../protocol/api/primitives.ts';
import type { StreamSource } from '../event/record.ts';
import type { OpenStreams } from './open-streams.ts';

/** Bounds of every stream. */
const streamBounds = {
  /** After this time without an item a comment is sent, ms, so that nobody on the way takes the stream for dead. */
  heartbeatMs: 15_000,
  /** A stream ends after this time, and the client begins another. */
  secondsMax: 60,
} as const;

/** The members of a query that every stream accepts; `after` says where it begins. */
export const streamQuery = (after: string) => ({
  after: Type.Optional(
    int64({ minimum: 0, description: `The \`id\` of the last item that was seen; default: ${after}` }),
  ),
  seconds: Type.Optional(
    int32({
      minimum: 0,
      maximum: streamBounds.secondsMax,
      default: streamBounds.secondsMax,
      description: 'When it ends',
    }),
  ),
});

/** The header by which other readers of server-sent events name their place. Source: the HTML standard, 9.2. */
export const streamHeaders = Type.Object({
  'last-event-id': Type.Optional(
    Type.String({ pattern: '^[0-9]{0,15}$', description: 'The same as `after`; the greater one counts' }),
  ),
});

/** The success of a stream whose items have this schema. `more`: text to add to its description. */
export const streamAnswer = (item: TSchema, more: string) =>
  ({
    200: {
      description:
        `Server-sent events: \`ready\`, then each ${item.$id} with its place as \`id\`. ${more}` +
        'The stream ends after a minute, and when the credential is revoked; go on with `after`',
      binary: true,
      contentType: 'text/event-stream',
      item,
    },
  }) as const;

type StreamRequest = {
  caller: { team: { teamId: string } };
  query: { after?: number | undefined; seconds?: number | undefined };
  headers: { 'last-event-id'?: string | undefined };
  signal: AbortSignal;
  isStillLetIn(): Promise<boolean>;
};

/** The place after which a stream should begin; null where the client names none. */
export function placeOf({ query, headers }: Pick<StreamRequest, 'query' | 'headers'>): number | null {
  const last = headers['last-event-id'];
  return last ? Math.max(Number(last), query.after ?? 0) : (query.after ?? null);
}

/** The answer of a stream. Throws `rate_limited` where the team has too many open. `textOf`: writes an item as JSON. */
export function streamReply<T>(
  { streams, stopping }: { streams: OpenStreams; stopping: AbortSignal },
  request: StreamRequest,
  source: StreamSource<T>,
  { pollMs, textOf }: { pollMs: number; textOf: (item: T) => string },
) {
  const open = streams.open(request.caller.team.teamId);
  const ends = AbortSignal.any([request.signal, stopping]);
  // Where nobody reads a word of it, nothing below would free its place.
  ends.addEventListener('abort', () => open[Symbol.dispose]());
  const texts = messages(source, request, { pollMs, textOf, open }, ends);
  const encoder = new TextEncoder();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await texts.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await texts.return(undefined);
    },
  });
  return { status: 200 as const, stream, headers: { 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' } };
}

/**
 * Sends a source as server-sent events: first `ready` with the place where the stream begins, then each item, then
 * `end` where the source ends. It ends with `signal`, after `seconds`, and when `isStillLetIn`, called before each
 * look, says no: a revoked credential reads nothing more.
 */
async function* messages<T>(
  source: StreamSource<T>,
  { query: { seconds = streamBounds.secondsMax }, isStillLetIn }: StreamRequest,
  { pollMs, textOf, open }: { pollMs: number; textOf: (item: T) => string; open: Disposable },
  signal: AbortSignal,
): AsyncGenerator<string> {
  using _ = open;
  const endMs = performance.now() + seconds * 1000;
  yield `event: ready\nid: ${source.begin}\ndata: {"after":${source.begin}}\n\n`;
  let spokenMs = performance.now();
  while (!signal.aborted && performance.now() < endMs && (await isStillLetIn())) {
    const { items, isMore, standing, end } = await source.next();
    const told = items.map(({ place, item }) => `id: ${place}\ndata: ${textOf(item)}\n\n`);
    if (standing) told.push(`event: ${standing.event}\ndata: ${JSON.stringify(standing.data)}\n\n`);
    if (told.length > 0) {
      yield told.join('');
      spokenMs = performance.now();
    } else if (performance.now() - spokenMs > streamBounds.heartbeatMs) {
      yield ':\n\n';
      spokenMs = performance.now();
    }
    if (end) return yield `event: end\ndata: ${JSON.stringify(end)}\n\n`;
    if (!isMore) await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
}
