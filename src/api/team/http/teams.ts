import { Type } from '@sinclair/typebox';
import { Team } from '../../../protocol/api/team.ts';
import { listTeamsWithKeys } from '../rules/teams.ts';
import { route } from '../../http/route.ts';
import type { RateLimiter } from '../../credential/rules/rate-limit.ts';
import type { Accounts } from '../rules/provision-team.ts';

/** `GET /teams` */
export const listTeams = route({
  operationId: 'listTeams',
  method: 'GET',
  path: '/teams',
  summary: 'List the teams of a user, each with a new API key',
  auth: 'user',
  long: true,
  proof: true,
  noStore: true,
  // It makes keys.
  changes: true,
  responses: { 200: { description: 'The teams', schema: Type.Array(Team) } },
  async handle(deps: Accounts & { rateLimiter: RateLimiter }, { caller, audit }) {
    audit({ target: `user:${caller.user.userId}` });
    const teams = await listTeamsWithKeys(deps, caller.user, caller.held);
    return {
      status: 200,
      body: teams.map(({ team, apiKey, isDefault }) => ({ teamID: team.teamId, name: team.name, apiKey, isDefault })),
    };
  },
});
