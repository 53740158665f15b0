import { Type } from '@sinclair/typebox';
import { AdminTeam, NewTeam, TeamChange } from '../../protocol/api/team.ts';
import { teamForAdmin } from '../app/admin.ts';
import { changeTeam, listAllTeams } from '../app/admin-teams.ts';
import { formatTime } from '../../base/time.ts';
import { createTeam } from '../app/provision-team.ts';
import type { TeamRecord } from '../store/team.ts';
import { route } from './route.ts';

export const listTeamsAsAdmin = route({
  operationId: 'adminListTeams',
  method: 'GET',
  path: '/admin/teams',
  summary: 'Every team',
  auth: 'admin',
  responses: { 200: { description: 'The teams', schema: Type.Array(AdminTeam) } },
  async handle(app) {
    return { status: 200, body: (await listAllTeams(app)).map(teamView) };
  },
});

export const createTeamAsAdmin = route({
  operationId: 'adminCreateTeam',
  method: 'POST',
  path: '/admin/teams',
  summary: 'A new team',
  auth: 'admin',
  body: NewTeam,
  responses: { 201: { description: 'The team', schema: AdminTeam } },
  errors: [409],
  async handle(app, { body, note }) {
    const team = await createTeam(app, body);
    note({ target: `team:${team.teamId}`, after: changeable(team) });
    return { status: 201, body: teamView(team) };
  },
});

export const updateTeamAsAdmin = route({
  operationId: 'adminUpdateTeam',
  method: 'PATCH',
  path: '/admin/teams/{teamID}',
  summary: 'Rename a team, set its limits, ban or block it',
  auth: 'admin',
  params: Type.Object({ teamID: Type.String() }),
  body: TeamChange,
  responses: { 200: { description: 'The team', schema: AdminTeam } },
  errors: [404],
  async handle(app, { params, body, note }) {
    const before = await teamForAdmin(app, params.teamID);
    const after = await changeTeam(app, before, body);
    note({ target: `team:${after.teamId}`, before: changeable(before), after: changeable(after) });
    return { status: 200, body: teamView(after) };
  },
});

function changeable({ name, limits, banned, blocked }: TeamRecord): Record<string, unknown> {
  return { name, limits, banned, blocked };
}

function teamView(team: TeamRecord): AdminTeam {
  const { teamId, createdAtUs, ...rest } = team;
  return { teamID: teamId, ...rest, createdAt: formatTime(createdAtUs) };
}
