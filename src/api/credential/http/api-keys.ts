import { Type } from '@sinclair/typebox';
import { CreatedTeamAPIKey, NewTeamAPIKey, TeamAPIKey, UpdateTeamAPIKey } from '../../../protocol/api/team.ts';
import { createMembersKey, listTeamKeys, renameTeamKey, revokeTeamKey } from '../rules/api-keys.ts';
import { apiKeyView } from './view.ts';
import { route } from '../../http/route.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { CredentialCache } from '../rules/cache.ts';

const apiKeyParams = Type.Object({ apiKeyID: Type.String() });

/** `GET /api-keys` */
export const listApiKeysRoute = route({
  operationId: 'listApiKeys',
  method: 'GET',
  path: '/api-keys',
  summary: 'List the API keys of the team, masked',
  auth: 'memberOrAdmin',
  long: true,
  role: 'admin',
  responses: { 200: { description: 'The keys', schema: Type.Array(TeamAPIKey) } },
  async handle({ db }: { db: Db }, { caller }) {
    const keys = await listTeamKeys(db, caller.team);
    return { status: 200, body: keys.map(({ key, createdBy }) => apiKeyView(key, createdBy)) };
  },
});

/** `POST /api-keys` */
export const createApiKeyRoute = route({
  operationId: 'createApiKey',
  method: 'POST',
  path: '/api-keys',
  summary: 'Create an API key for the team',
  auth: 'member',
  role: 'admin',
  proof: true,
  noStore: true,
  body: NewTeamAPIKey,
  responses: { 201: { description: 'The key, shown this once', schema: CreatedTeamAPIKey } },
  async handle(deps: { clock: Clock; db: Db }, { caller, body, audit }) {
    const { key, text, createdBy } = await createMembersKey(deps, caller.team, body.name, caller.actor.id);
    audit({ target: `apiKey:${key.keyId}`, after: { name: key.name } });
    return { status: 201, body: { ...apiKeyView(key, createdBy), key: text } };
  },
});

/** `PATCH /api-keys/{apiKeyID}` */
export const renameApiKeyRoute = route({
  operationId: 'renameApiKey',
  method: 'PATCH',
  path: '/api-keys/{apiKeyID}',
  summary: 'Rename an API key',
  auth: 'memberOrAdmin',
  role: 'admin',
  params: apiKeyParams,
  body: UpdateTeamAPIKey,
  strict: true,
  responses: { 200: { description: 'Renamed' } },
  errors: [404, 409],
  async handle({ db }: { db: Db }, { caller, params, body, audit }) {
    audit({ target: `apiKey:${params.apiKeyID}`, after: { name: body.name } });
    await renameTeamKey(db, caller.team, params.apiKeyID, body.name);
    return { status: 200 };
  },
});

/** `DELETE /api-keys/{apiKeyID}` */
export const deleteApiKeyRoute = route({
  operationId: 'deleteApiKey',
  method: 'DELETE',
  path: '/api-keys/{apiKeyID}',
  summary: 'Delete an API key; it is refused from the next request on',
  auth: 'memberOrAdmin',
  role: 'admin',
  params: apiKeyParams,
  responses: { 204: { description: 'Revoked' } },
  errors: [404],
  async handle(deps: { credentials: CredentialCache; db: Db }, { caller, params, audit }) {
    audit({ target: `apiKey:${params.apiKeyID}` });
    await revokeTeamKey(deps, caller.team, params.apiKeyID);
    return { status: 204 };
  },
});
