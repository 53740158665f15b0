import { TeamUse } from '../../../protocol/api/team.ts';
import type { Db } from '../../database/db.ts';
import { route } from '../../http/route.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import { teamUse } from '../rules/team-use.ts';

/** `GET /limits` */
export const readLimitsRoute = route({
  operationId: 'getLimits',
  method: 'GET',
  path: '/limits',
  summary: 'Get the limits of the team and how much of them is taken now',
  auth: 'team',
  long: true,
  responses: { 200: { description: 'The limits', schema: TeamUse } },
  async handle(deps: { db: Db; limitsOf: LimitsOf }, { caller }) {
    return { status: 200, body: await teamUse(deps, caller.team) };
  },
});
