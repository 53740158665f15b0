import { Type } from '@sinclair/typebox';
import { int32, mapOf } from '../../protocol/api/primitives.ts';
import { CreatedTeamAPIKey, NewTeamAPIKey } from '../../protocol/api/team.ts';
import { countRunning, killAllOf, teamForAdmin } from '../app/admin.ts';
import { cancelBuildsOf } from '../app/build-follow.ts';
import { revokeTeamKey } from '../app/api-keys.ts';
import { createApiKey } from '../app/provision-team.ts';
import { apiKeyView } from './credential-view.ts';
import { route } from './route.ts';

const teamParams = Type.Object({ teamID: Type.String() });

export const killTeamSandboxes = route({
  operationId: 'adminKillTeamSandboxes',
  method: 'POST',
  path: '/admin/teams/{teamID}/sandboxes/kill',
  summary: 'End every sandbox of a team',
  auth: 'admin',
  params: teamParams,
  responses: {
    200: {
      description: 'What was ended, and what could not be removed yet',
      schema: Type.Object({ killedCount: int32({ minimum: 0 }), failedCount: int32({ minimum: 0 }) }),
    },
  },
  errors: [400, 404],
  async handle(app, { params, note }) {
    const { killed, failed } = await killAllOf(app, await teamForAdmin(app, params.teamID));
    note({ target: `team:${params.teamID}`, after: { killed, failed } });
    return { status: 200, body: { killedCount: killed, failedCount: failed } };
  },
});

export const cancelTeamBuilds = route({
  operationId: 'adminCancelTeamBuilds',
  method: 'POST',
  path: '/admin/teams/{teamID}/builds/cancel',
  summary: 'End every build of a team that waits or runs',
  auth: 'admin',
  params: teamParams,
  responses: {
    200: {
      description: 'What was ended',
      schema: Type.Object({ cancelledCount: int32({ minimum: 0 }), failedCount: int32({ minimum: 0 }) }),
    },
  },
  errors: [400, 404],
  async handle(app, { params, note }) {
    const team = await teamForAdmin(app, params.teamID);
    const cancelled = await cancelBuildsOf(app, { teamId: team.teamId }, 'Cancelled by the operator');
    note({ target: `team:${params.teamID}`, after: { cancelled } });
    return { status: 200, body: { cancelledCount: cancelled, failedCount: 0 } };
  },
});

export const readRunningCounts = route({
  operationId: 'adminGetRunningCounts',
  method: 'GET',
  path: '/admin/sandboxes/running-counts',
  summary: 'How many sandboxes each team has running; teams without any are left out',
  auth: 'admin',
  responses: { 200: { description: 'Counts by team ID', schema: mapOf(int32({ minimum: 1 })) } },
  async handle(app) {
    return { status: 200, body: Object.fromEntries(await countRunning(app)) };
  },
});

export const createTeamKeyAsAdmin = route({
  operationId: 'adminCreateApiKey',
  method: 'POST',
  path: '/admin/teams/{teamID}/api-keys',
  summary: 'A new key of a team',
  auth: 'admin',
  noStore: true,
  params: teamParams,
  body: NewTeamAPIKey,
  responses: { 201: { description: 'The key, shown this once', schema: CreatedTeamAPIKey } },
  errors: [404],
  async handle(app, { params, body, note }) {
    const { key, text } = await createApiKey(app, await teamForAdmin(app, params.teamID), body.name);
    note({ target: `apiKey:${key.keyId}`, after: { name: key.name, teamId: key.teamId } });
    return { status: 201, body: { ...apiKeyView(key, null), key: text } };
  },
});

export const deleteTeamKeyAsAdmin = route({
  operationId: 'adminDeleteApiKey',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/api-keys/{apiKeyID}',
  summary: 'Revoke a key of a team',
  auth: 'admin',
  params: Type.Object({ teamID: Type.String(), apiKeyID: Type.String() }),
  responses: { 204: { description: 'Revoked' } },
  errors: [400, 404],
  async handle(app, { params, note }) {
    note({ target: `apiKey:${params.apiKeyID}` });
    await revokeTeamKey(app, await teamForAdmin(app, params.teamID), params.apiKeyID);
    return { status: 204 };
  },
});
