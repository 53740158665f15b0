import { Type } from '@sinclair/typebox';
import { Team } from '../../protocol/api/team.ts';
import { listTeamsWithKeys } from '../app/teams.ts';
import { route } from './route.ts';

export const listTeams = route({
  operationId: 'listTeams',
  method: 'GET',
  path: '/teams',
  summary: 'The teams of a user, each with a new API key',
  auth: 'user',
  noStore: true,
  // It makes keys.
  changes: true,
  responses: { 200: { description: 'The teams', schema: Type.Array(Team) } },
  async handle(app, { caller, note }) {
    note({ target: `user:${caller.user.userId}` });
    const teams = await listTeamsWithKeys(app, caller.user);
    return {
      status: 200,
      body: teams.map(({ team, apiKey, isDefault }) => ({ teamID: team.teamId, name: team.name, apiKey, isDefault })),
    };
  },
});
