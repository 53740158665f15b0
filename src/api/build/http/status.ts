import { Type } from '@sinclair/typebox';
import { BuildInfo, BuildLogs, BuildLogsQuery, BuildStatusQuery } from '../../../protocol/api/template-build.ts';
import type { BuildInfo as Info } from '../../../protocol/api/template-build.ts';
import { readBuildLogs, readBuildNews } from '../rules/status.ts';
import { logEntryView } from './view.ts';
import { route } from '../../http/route.ts';
import type { Db } from '../../database/db.ts';

const params = Type.Object({ templateID: Type.String(), buildID: Type.String() });

/** `GET /templates/{templateID}/builds/{buildID}/status` */
export const readBuildStatus = route({
  operationId: 'getTemplateBuildStatus',
  method: 'GET',
  path: '/templates/{templateID}/builds/{buildID}/status',
  summary: 'Get the status of a build and the next lines of its log',
  auth: 'teamOrUser',
  params,
  query: BuildStatusQuery,
  // By it clients learn that the template is there.
  durable: true,
  responses: { 200: { description: 'The build', schema: BuildInfo } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params, query }) {
    const { logsOffset = 0, limit = 100, level } = query;
    const ids = { templateId: params.templateID, buildId: params.buildID };
    const { build, entries, reasonEntries } = await readBuildNews(db, caller.team, ids, {
      limit,
      offset: logsOffset,
      ...(level && { level }),
    });
    const info: Info = {
      templateID: build.templateId,
      buildID: build.buildId,
      status: build.status,
      logs: [],
      logEntries: entries.map(logEntryView),
      ...(build.reason && { reason: { ...build.reason, logEntries: reasonEntries.map(logEntryView) } }),
    };
    return { status: 200, body: info };
  },
});

/** `GET /templates/{templateID}/builds/{buildID}/logs` */
export const readBuildLogsRoute = route({
  operationId: 'getTemplateBuildLogs',
  method: 'GET',
  path: '/templates/{templateID}/builds/{buildID}/logs',
  summary: 'Get a page of the log of a build',
  auth: 'teamOrUser',
  params,
  query: BuildLogsQuery,
  responses: { 200: { description: 'The lines', schema: BuildLogs } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params, query }) {
    const { cursor, limit = 100, direction, level } = query;
    const ids = { templateId: params.templateID, buildId: params.buildID };
    const page = {
      limit,
      backward: direction === 'backward',
      ...(cursor !== undefined && { cursorMs: cursor }),
      ...(level && { level }),
    };
    const logs = await readBuildLogs(db, caller.team, ids, page);
    return { status: 200, body: { logs: logs.map(logEntryView) } };
  },
});
