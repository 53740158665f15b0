import { Type } from '@sinclair/typebox';
import { int32, mapOf } from '../../../protocol/api/primitives.ts';
import { CreatedTeamAPIKey, NewTeamAPIKey } from '../../../protocol/api/team.ts';
import { countRunning, killAllOf, teamForAdmin } from '../workflows/team-actions.ts';
import { cancelBuildsOf } from '../../build/rules/follow.ts';
import { revokeTeamKey, createApiKey } from '../../credential/rules/api-keys.ts';
import { apiKeyView } from '../../credential/http/view.ts';
import { route } from '../../http/route.ts';
import type { Clock } from '../../../base/clock.ts';
import type { SandboxWork } from '../../sandbox/workflows/run.ts';
import type { CancelDeps } from '../../build/rules/follow.ts';
import type { Db } from '../../database/db.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';

const teamParams = Type.Object({ teamID: Type.String() });

/** `POST /admin/teams/{teamID}/sandboxes/kill` */
export const killTeamSandboxes = route({
  operationId: 'adminKillTeamSandboxes',
  method: 'POST',
  path: '/admin/teams/{teamID}/sandboxes/kill',
  summary: 'Kill all sandboxes of a team',
  auth: 'admin',
  proof: true,
  params: teamParams,
  responses: {
    200: {
      description: 'What was ended, and what could not be removed yet',
      schema: Type.Object({ killedCount: int32({ minimum: 0 }), failedCount: int32({ minimum: 0 }) }),
    },
  },
  errors: [404],
  async handle(deps: SandboxWork, { params, audit }) {
    const { killed, failed } = await killAllOf(deps, await teamForAdmin(deps.db, params.teamID));
    audit({ target: `team:${params.teamID}`, after: { killed, failed } });
    return { status: 200, body: { killedCount: killed, failedCount: failed } };
  },
});

/** `POST /admin/teams/{teamID}/builds/cancel` */
export const cancelTeamBuilds = route({
  operationId: 'adminCancelTeamBuilds',
  method: 'POST',
  path: '/admin/teams/{teamID}/builds/cancel',
  summary: 'Cancel all builds of a team that wait or run',
  auth: 'admin',
  params: teamParams,
  responses: {
    200: {
      description: 'What was ended',
      schema: Type.Object({ cancelledCount: int32({ minimum: 0 }), failedCount: int32({ minimum: 0 }) }),
    },
  },
  errors: [404],
  async handle(deps: CancelDeps, { params, audit }) {
    const team = await teamForAdmin(deps.db, params.teamID);
    const cancelled = await cancelBuildsOf(deps, { teamId: team.teamId }, 'Cancelled by the operator');
    audit({ target: `team:${params.teamID}`, after: { cancelled } });
    return { status: 200, body: { cancelledCount: cancelled, failedCount: 0 } };
  },
});

/** `GET /admin/sandboxes/running-counts` */
export const readRunningCounts = route({
  operationId: 'adminGetRunningCounts',
  method: 'GET',
  path: '/admin/sandboxes/running-counts',
  summary: 'Count the running sandboxes of each team; teams without any are left out',
  auth: 'admin',
  responses: { 200: { description: 'Counts by team ID', schema: mapOf(int32({ minimum: 1 })) } },
  async handle({ db }: { db: Db }) {
    return { status: 200, body: Object.fromEntries(await countRunning(db)) };
  },
});

/** `POST /admin/teams/{teamID}/api-keys` */
export const createTeamKeyAsAdmin = route({
  operationId: 'adminCreateApiKey',
  method: 'POST',
  path: '/admin/teams/{teamID}/api-keys',
  summary: 'Create an API key for a team',
  auth: 'admin',
  proof: true,
  noStore: true,
  params: teamParams,
  body: NewTeamAPIKey,
  responses: { 201: { description: 'The key, shown this once', schema: CreatedTeamAPIKey } },
  errors: [404],
  async handle(deps: { clock: Clock; db: Db }, { params, body, audit }) {
    const { key, text } = await createApiKey(deps, await teamForAdmin(deps.db, params.teamID), body.name);
    audit({ target: `apiKey:${key.keyId}`, after: { name: key.name, teamId: key.teamId } });
    return { status: 201, body: { ...apiKeyView(key, null), key: text } };
  },
});

/** `DELETE /admin/teams/{teamID}/api-keys/{apiKeyID}` */
export const deleteTeamKeyAsAdmin = route({
  operationId: 'adminDeleteApiKey',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/api-keys/{apiKeyID}',
  summary: 'Delete an API key of a team',
  auth: 'admin',
  params: Type.Object({ teamID: Type.String(), apiKeyID: Type.String() }),
  responses: { 204: { description: 'Revoked' } },
  errors: [404],
  async handle(deps: { credentials: CredentialCache; db: Db }, { params, audit }) {
    audit({ target: `apiKey:${params.apiKeyID}` });
    await revokeTeamKey(deps, await teamForAdmin(deps.db, params.teamID), params.apiKeyID);
    return { status: 204 };
  },
});
