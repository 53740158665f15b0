import { Type } from '@sinclair/typebox';
import { int32 } from '../../protocol/api/primitives.ts';
import { NewSecret, NewSecretVersion, Secret } from '../../protocol/api/secret.ts';
import { formatTime } from '../../base/time.ts';
import { applySecretChange } from '../app/secret-change.ts';
import { createSecret, listSecretsOf, readSecret, removeSecret, secretPageMax, updateSecret } from '../app/secrets.ts';
import type { SecretRecord } from '../store/secrets.ts';
import { route } from './route.ts';

const params = Type.Object({ secretID: Type.String({ description: 'ID or name' }) });

export const listSecretsRoute = route({
  operationId: 'listSecrets',
  method: 'GET',
  path: '/secrets',
  summary: 'The secrets of the team without their values, newest first, page by page',
  auth: 'team',
  noStore: true,
  query: Type.Object({
    limit: Type.Optional(int32({ minimum: 1, maximum: secretPageMax, default: secretPageMax })),
    nextToken: Type.Optional(Type.String()),
  }),
  responses: {
    200: { description: 'A page of secrets', schema: Type.Array(Secret), headers: { 'X-Next-Token': 'Token of the next page, when there is one' } },
  },
  async handle(app, { caller, query }) {
    const { items, nextToken } = await listSecretsOf(app, caller.team, query);
    return { status: 200, body: items.map(secretView), headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) } };
  },
});

export const createSecretRoute = route({
  operationId: 'createSecret',
  method: 'POST',
  path: '/secrets',
  summary: 'A new secret',
  auth: 'team',
  noStore: true,
  body: NewSecret,
  responses: { 201: { description: 'The secret', schema: Secret } },
  errors: [409],
  async handle(app, { caller, body, note }) {
    const secret = await createSecret(app, caller.team, body);
    note({ target: `secret:${secret.secretId}`, after: { name: secret.name, version: secret.currentVersion } });
    return { status: 201, body: secretView(secret) };
  },
});

export const readSecretRoute = route({
  operationId: 'getSecret',
  method: 'GET',
  path: '/secrets/{secretID}',
  summary: 'A secret without its value',
  auth: 'team',
  noStore: true,
  params,
  responses: { 200: { description: 'The secret', schema: Secret } },
  errors: [404],
  async handle(app, { caller, params }) {
    return { status: 200, body: secretView(await readSecret(app, caller.team, params.secretID)) };
  },
});

export const updateSecretRoute = route({
  operationId: 'updateSecret',
  method: 'POST',
  path: '/secrets/{secretID}',
  summary: 'The next version of a secret',
  auth: 'team',
  noStore: true,
  params,
  body: NewSecretVersion,
  responses: { 200: { description: 'The secret', schema: Secret } },
  errors: [404, 409],
  async handle(app, { caller, params, body, note }) {
    const secret = await updateSecret(app, caller.team, params.secretID, body);
    const version = secret.currentVersion;
    note({ target: `secret:${secret.secretId}`, before: { version: version - 1 }, after: { version } });
    await applySecretChange(app, secret);
    return { status: 200, body: secretView(secret) };
  },
});

export const deleteSecretRoute = route({
  operationId: 'deleteSecret',
  method: 'DELETE',
  path: '/secrets/{secretID}',
  summary: 'Delete a secret',
  auth: 'team',
  noStore: true,
  params,
  responses: { 204: { description: 'It is gone' } },
  errors: [404],
  async handle(app, { caller, params, note }) {
    const secret = await removeSecret(app, caller.team, params.secretID);
    note({ target: `secret:${secret.secretId}`, before: { name: secret.name, version: secret.currentVersion } });
    await applySecretChange(app, secret);
    return { status: 204 };
  },
});

function secretView(secret: SecretRecord): Secret {
  return {
    secretID: secret.secretId,
    name: secret.name,
    currentVersion: secret.currentVersion,
    metadata: secret.metadata,
    createdAt: formatTime(secret.createdAtUs),
    updatedAt: formatTime(secret.updatedAtUs),
  };
}
