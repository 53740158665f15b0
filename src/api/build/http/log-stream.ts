import { Type } from '@sinclair/typebox';
import { BuildLogEntry, logLevels } from '../../../protocol/api/template-build.ts';
import { oneOf } from '../../../protocol/api/primitives.ts';
import type { Db } from '../../database/db.ts';
import { placeOf, streamAnswer, streamHeaders, streamQuery, streamReply } from '../../http/event-stream.ts';
import type { OpenStreams } from '../../http/open-streams.ts';
import { route } from '../../http/route.ts';
import { buildLogSource, buildLogStreamBounds } from '../rules/log-stream.ts';
import { logEntryView } from './view.ts';

/** `GET /templates/{templateID}/builds/{buildID}/logs/stream` */
export const streamBuildLogs = route({
  operationId: 'streamTemplateBuildLogs',
  method: 'GET',
  path: '/templates/{templateID}/builds/{buildID}/logs/stream',
  summary: 'Stream the log of a build as it grows',
  auth: 'teamOrUser',
  params: Type.Object({ templateID: Type.String(), buildID: Type.String() }),
  query: Type.Object({ ...streamQuery('from the first line on'), level: Type.Optional(oneOf(logLevels)) }),
  headers: streamHeaders,
  responses: streamAnswer(
    BuildLogEntry,
    'When the build has ended and all is told, `end` with `status` (`ready` or `error`) and `reason`. ',
  ),
  errors: [404],
  async handle(deps: { db: Db; streams: OpenStreams; stopping: AbortSignal }, input) {
    const { caller, params, query } = input;
    const ids = { templateId: params.templateID, buildId: params.buildID };
    const source = await buildLogSource(deps.db, caller.team, ids, {
      after: placeOf(input) ?? 0,
      ...(query.level && { level: query.level }),
    });
    const textOf = (entry: Parameters<typeof logEntryView>[0]) => JSON.stringify(logEntryView(entry));
    return streamReply(deps, input, source, { pollMs: buildLogStreamBounds.pollMs, textOf });
  },
});
