import { Type } from '@sinclair/typebox';
import { MaxTeamMetric, TeamMetric, teamMetricNames } from '../../protocol/api/metrics.ts';
import { oneOf } from '../../protocol/api/primitives.ts';
import { formatTime } from '../../base/time.ts';
import { microsPerSecond } from '../app/clock.ts';
import { readHighestTeamMetric, readTeamMetrics } from '../app/team-metrics.ts';
import { route } from './route.ts';
import { rangeQuery } from './sandbox-metrics.ts';

const teamParams = Type.Object({ teamID: Type.String() });

export const readTeamMetricsRoute = route({
  operationId: 'getTeamMetrics',
  method: 'GET',
  path: '/teams/{teamID}/metrics',
  summary: 'How many sandboxes the team ran and started, of the last 7 days unless asked otherwise',
  auth: 'team',
  params: teamParams,
  query: Type.Object(rangeQuery),
  responses: { 200: { description: 'At most 1,000 spans of equal length, oldest first', schema: Type.Array(TeamMetric) } },
  async handle(app, { caller, params, query }) {
    const points = await readTeamMetrics(app, caller.team, params.teamID, query);
    return { status: 200, body: points.map(({ atSeconds, ...point }) => ({ ...timeView(atSeconds), ...point })) };
  },
});

export const readHighestTeamMetricRoute = route({
  operationId: 'getTeamMetricsMax',
  method: 'GET',
  path: '/teams/{teamID}/metrics/max',
  summary: 'The highest value of one metric of the team',
  auth: 'team',
  params: teamParams,
  query: Type.Object({ metric: oneOf(teamMetricNames), ...rangeQuery }),
  responses: { 200: { description: 'The value, and when it was', schema: MaxTeamMetric } },
  async handle(app, { caller, params, query }) {
    const { metric, ...range } = query;
    const { atSeconds, value } = await readHighestTeamMetric(app, caller.team, params.teamID, metric, range);
    return { status: 200, body: { ...timeView(atSeconds), value } };
  },
});

function timeView(atSeconds: number): { timestamp: string; timestampUnix: number } {
  return { timestamp: formatTime(atSeconds * microsPerSecond), timestampUnix: atSeconds };
}
