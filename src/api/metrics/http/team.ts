import { Type } from '@sinclair/typebox';
import { MaxTeamMetric, TeamMetric, teamMetricNames, TemplateUse } from '../../../protocol/api/metrics.ts';
import { oneOf } from '../../../protocol/api/primitives.ts';
import { formatTime } from '../../../base/time.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { readHighestTeamMetric, readTeamMetrics, readTemplateUse } from '../rules/team.ts';
import { shownNames } from '../../template/http/view.ts';
import { route } from '../../http/route.ts';
import { rangeQuery } from './sandbox.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';

type TeamMetricsDeps = { clock: Clock; db: Db };

const teamParams = Type.Object({ teamID: Type.String() });

/** `GET /teams/{teamID}/metrics` */
export const readTeamMetricsRoute = route({
  operationId: 'getTeamMetrics',
  method: 'GET',
  path: '/teams/{teamID}/metrics',
  summary: 'Get the metrics of a team, of the last 7 days by default',
  auth: 'team',
  long: true,
  params: teamParams,
  query: Type.Object(rangeQuery),
  responses: {
    200: { description: 'At most 1,000 spans of equal length, oldest first', schema: Type.Array(TeamMetric) },
  },
  async handle(deps: TeamMetricsDeps, { caller, params, query }) {
    const points = await readTeamMetrics(deps, caller.team, params.teamID, query);
    return { status: 200, body: points.map(({ atSeconds, ...point }) => ({ ...timeView(atSeconds), ...point })) };
  },
});

/** `GET /teams/{teamID}/metrics/max` */
export const readHighestTeamMetricRoute = route({
  operationId: 'getTeamMetricsMax',
  method: 'GET',
  path: '/teams/{teamID}/metrics/max',
  summary: 'Get the maximum of a metric of a team',
  auth: 'team',
  long: true,
  params: teamParams,
  query: Type.Object({ metric: oneOf(teamMetricNames), ...rangeQuery }),
  responses: { 200: { description: 'The value, and when it was', schema: MaxTeamMetric } },
  async handle(deps: TeamMetricsDeps, { caller, params, query }) {
    const { metric, ...range } = query;
    const { atSeconds, value } = await readHighestTeamMetric(deps, caller.team, params.teamID, metric, range);
    return { status: 200, body: { ...timeView(atSeconds), value } };
  },
});

/** `GET /teams/{teamID}/metrics/templates` */
export const readTemplateUseRoute = route({
  operationId: 'getTeamTemplateUse',
  method: 'GET',
  path: '/teams/{teamID}/metrics/templates',
  summary: 'Get for how long sandboxes of each template ran, in the last 7 days by default',
  auth: 'team',
  long: true,
  params: teamParams,
  query: Type.Object(rangeQuery),
  responses: {
    200: {
      description: 'The 100 most used templates, the most first, in the hours that the range has a part of',
      schema: Type.Array(TemplateUse),
    },
  },
  async handle(deps: TeamMetricsDeps, { caller, params, query }) {
    const used = await readTemplateUse(deps, caller.team, params.teamID, query);
    return {
      status: 200,
      body: used.map(({ templateId, names, sandboxSeconds }) => ({
        templateID: templateId,
        names: shownNames(names),
        sandboxSeconds,
      })),
    };
  },
});

function timeView(atSeconds: number): { timestamp: string; timestampUnix: number } {
  return { timestamp: formatTime(atSeconds * microsPerSecond), timestampUnix: atSeconds };
}
