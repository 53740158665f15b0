import { Type } from '@sinclair/typebox';
import { AdminTeam, NewTeam, TeamChange } from '../../../protocol/api/team.ts';
import { teamForAdmin } from '../workflows/team-actions.ts';
import { changeTeam, listAllTeams } from '../rules/teams.ts';
import { formatTime } from '../../../base/time.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { route } from '../../http/route.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';

/** `GET /admin/teams` */
export const listTeamsAsAdmin = route({
  operationId: 'adminListTeams',
  method: 'GET',
  path: '/admin/teams',
  summary: 'List all teams',
  auth: 'admin',
  responses: { 200: { description: 'The teams', schema: Type.Array(AdminTeam) } },
  async handle({ db }: { db: Db }) {
    return { status: 200, body: (await listAllTeams(db)).map(teamView) };
  },
});

/** `POST /admin/teams` */
export const createTeamAsAdmin = route({
  operationId: 'adminCreateTeam',
  method: 'POST',
  path: '/admin/teams',
  summary: 'Create a team',
  auth: 'admin',
  body: NewTeam,
  responses: { 201: { description: 'The team', schema: AdminTeam } },
  errors: [409],
  async handle(deps: { clock: Clock; db: Db }, { body, audit }) {
    const team = await createTeam(deps, body);
    audit({ target: `team:${team.teamId}`, after: changeable(team) });
    return { status: 201, body: teamView(team) };
  },
});

/** `PATCH /admin/teams/{teamID}` */
export const updateTeamAsAdmin = route({
  operationId: 'adminUpdateTeam',
  method: 'PATCH',
  path: '/admin/teams/{teamID}',
  summary: 'Update a team: its name, limits and what its pauses outlive; ban or block it',
  auth: 'admin',
  params: Type.Object({ teamID: Type.String() }),
  body: TeamChange,
  responses: { 200: { description: 'The team', schema: AdminTeam } },
  errors: [404],
  async handle(deps: { credentials: CredentialCache; db: Db }, { params, body, audit }) {
    const before = await teamForAdmin(deps.db, params.teamID);
    const after = await changeTeam(deps, before, body);
    audit({ target: `team:${after.teamId}`, before: changeable(before), after: changeable(after) });
    return { status: 200, body: teamView(after) };
  },
});

function changeable({ name, limits, banned, blocked, pauseDurability }: TeamRecord): Record<string, unknown> {
  return { name, limits, banned, blocked, pauseDurability };
}

function teamView(team: TeamRecord): AdminTeam {
  const { teamId, createdAtUs, ...rest } = team;
  return { teamID: teamId, ...rest, createdAt: formatTime(createdAtUs) };
}
