import { Type } from '@sinclair/typebox';
import { SandboxLogEntry, sandboxLogStreamQuery } from '../../../protocol/api/sandbox-logs.ts';
import { placeOf, streamAnswer, streamHeaders, streamQuery, streamReply } from '../../http/event-stream.ts';
import type { OpenStreams } from '../../http/open-streams.ts';
import type { Charging } from '../../credential/rules/rate-limit.ts';
import { route } from '../../http/route.ts';
import type { LogDeps } from '../rules/logs.ts';
import { logSource, logStreamBounds } from '../rules/log-stream.ts';
import { chargeSearch, entryView } from './logs.ts';
import { sandboxParams } from './read.ts';

/** `GET /sandboxes/{sandboxID}/logs/stream` */
export const streamSandboxLogs = route({
  operationId: 'streamSandboxLogs',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/logs/stream',
  summary: 'Stream the log of a sandbox as it grows',
  auth: 'team',
  params: sandboxParams,
  query: Type.Object({ ...streamQuery('as `tail` says'), ...sandboxLogStreamQuery }),
  headers: streamHeaders,
  responses: streamAnswer(SandboxLogEntry, 'When the sandbox has ended and all is told, `end`. '),
  errors: [404],
  async handle(deps: LogDeps & Charging & { streams: OpenStreams; stopping: AbortSignal }, input) {
    const { level, logger, search, tail = 0 } = input.query;
    chargeSearch(deps, input.caller, input.query);
    const source = await logSource(deps, input.caller.team, input.params.sandboxID, {
      after: placeOf(input),
      tail,
      ...(level && { minimum: level }),
      ...(logger && { logger }),
      ...(search && { search }),
    });
    const textOf = (entry: Parameters<typeof entryView>[0]) => JSON.stringify(entryView(entry));
    return streamReply(deps, input, source, { pollMs: logStreamBounds.pollMs, textOf });
  },
});
