import { Type } from '@sinclair/typebox';
import { CreatedTeamAPIKey, NewTeamAPIKey, TeamAPIKey, UpdateTeamAPIKey } from '../../protocol/api/team.ts';
import { listTeamKeys, renameTeamKey, revokeTeamKey } from '../app/api-keys.ts';
import { createApiKey } from '../app/provision-team.ts';
import { findUsers } from '../store/user.ts';
import { apiKeyView } from './credential-view.ts';
import { route } from './route.ts';

const apiKeyParams = Type.Object({ apiKeyID: Type.String() });

export const listApiKeysRoute = route({
  operationId: 'listApiKeys',
  method: 'GET',
  path: '/api-keys',
  summary: 'The keys of the team, masked',
  auth: 'memberOrAdmin',
  responses: { 200: { description: 'The keys', schema: Type.Array(TeamAPIKey) } },
  async handle(app, { caller }) {
    const keys = await listTeamKeys(app, caller.team);
    return { status: 200, body: keys.map(({ key, createdBy }) => apiKeyView(key, createdBy)) };
  },
});

export const createApiKeyRoute = route({
  operationId: 'createApiKey',
  method: 'POST',
  path: '/api-keys',
  summary: 'A new key of the team',
  auth: 'member',
  noStore: true,
  body: NewTeamAPIKey,
  responses: { 201: { description: 'The key, shown this once', schema: CreatedTeamAPIKey } },
  async handle(app, { caller, body, note }) {
    const { key, text } = await createApiKey(app, caller.team, body.name, caller.actor.id);
    note({ target: `apiKey:${key.keyId}`, after: { name: key.name } });
    const [user = null] = (await findUsers(app.store.db, key.createdBy === null ? [] : [key.createdBy])).values();
    return { status: 201, body: { ...apiKeyView(key, user), key: text } };
  },
});

export const renameApiKeyRoute = route({
  operationId: 'renameApiKey',
  method: 'PATCH',
  path: '/api-keys/{apiKeyID}',
  summary: 'Give a key another name',
  auth: 'memberOrAdmin',
  params: apiKeyParams,
  body: UpdateTeamAPIKey,
  strict: true,
  responses: { 200: { description: 'Renamed' } },
  errors: [404],
  async handle(app, { caller, params, body, note }) {
    note({ target: `apiKey:${params.apiKeyID}`, after: { name: body.name } });
    await renameTeamKey(app, caller.team, params.apiKeyID, body.name);
    return { status: 200 };
  },
});

export const deleteApiKeyRoute = route({
  operationId: 'deleteApiKey',
  method: 'DELETE',
  path: '/api-keys/{apiKeyID}',
  summary: 'Revoke a key: it is refused from the next request on',
  auth: 'memberOrAdmin',
  params: apiKeyParams,
  responses: { 204: { description: 'Revoked' } },
  errors: [400, 404],
  async handle(app, { caller, params, note }) {
    note({ target: `apiKey:${params.apiKeyID}` });
    await revokeTeamKey(app, caller.team, params.apiKeyID);
    return { status: 204 };
  },
});
