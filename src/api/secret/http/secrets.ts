import { Type } from '@sinclair/typebox';
import { int32 } from '../../../protocol/api/primitives.ts';
import { NewSecret, NewSecretVersion, Secret } from '../../../protocol/api/secret.ts';
import { formatTime } from '../../../base/time.ts';
import { applySecretChange } from '../../sandbox/workflows/secrets.ts';
import {
  createSecret,
  listSecretsOf,
  readSecret,
  removeSecret,
  secretPageMax,
  updateSecret,
} from '../rules/secrets.ts';
import { route } from '../../http/route.ts';
import type { SecretRecord } from '../record.ts';
import type { SecretDeps } from '../rules/secrets.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { ApplyDeps } from '../../sandbox/workflows/network-steps.ts';

const params = Type.Object({ secretID: Type.String({ description: 'ID or name' }) });

/** `GET /secrets` */
export const listSecretsRoute = route({
  operationId: 'listSecrets',
  method: 'GET',
  path: '/secrets',
  summary: 'List secrets of the team without their values, newest first, page by page',
  auth: 'team',
  long: true,
  noStore: true,
  query: Type.Object({
    limit: Type.Optional(int32({ minimum: 1, maximum: secretPageMax, default: secretPageMax })),
    nextToken: Type.Optional(Type.String()),
  }),
  responses: {
    200: {
      description: 'A page of secrets',
      schema: Type.Array(Secret),
      headers: { 'X-Next-Token': 'Token of the next page, when there is one' },
    },
  },
  async handle({ db }: { db: Db }, { caller, query }) {
    const { items, nextToken } = await listSecretsOf(db, caller.team, query);
    return {
      status: 200,
      body: items.map(secretView),
      headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) },
    };
  },
});

/** `POST /secrets` */
export const createSecretRoute = route({
  operationId: 'createSecret',
  method: 'POST',
  path: '/secrets',
  summary: 'Create a secret',
  auth: 'team',
  noStore: true,
  body: NewSecret,
  responses: { 201: { description: 'The secret', schema: Secret } },
  errors: [409],
  async handle(deps: SecretDeps, { caller, body, audit }) {
    const secret = await createSecret(deps, caller.team, body);
    audit({ target: `secret:${secret.secretId}`, after: { name: secret.name, version: secret.currentVersion } });
    return { status: 201, body: secretView(secret) };
  },
});

/** `GET /secrets/{secretID}` */
export const readSecretRoute = route({
  operationId: 'getSecret',
  method: 'GET',
  path: '/secrets/{secretID}',
  summary: 'Get a secret without its value',
  auth: 'team',
  noStore: true,
  params,
  responses: { 200: { description: 'The secret', schema: Secret } },
  errors: [404],
  async handle({ db }: { db: Db }, { caller, params }) {
    return { status: 200, body: secretView(await readSecret(db, caller.team, params.secretID)) };
  },
});

/** `POST /secrets/{secretID}` */
export const updateSecretRoute = route({
  operationId: 'updateSecret',
  method: 'POST',
  path: '/secrets/{secretID}',
  summary: 'Update a secret with a new version',
  auth: 'team',
  noStore: true,
  params,
  body: NewSecretVersion,
  responses: { 200: { description: 'The secret', schema: Secret } },
  errors: [404, 409],
  async handle(deps: ApplyDeps & { clock: Clock }, { caller, params, body, audit }) {
    const secret = await updateSecret(deps, caller.team, params.secretID, body);
    const version = secret.currentVersion;
    audit({ target: `secret:${secret.secretId}`, before: { version: version - 1 }, after: { version } });
    await applySecretChange(deps, secret);
    return { status: 200, body: secretView(secret) };
  },
});

/** `DELETE /secrets/{secretID}` */
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
  async handle(deps: ApplyDeps, { caller, params, audit }) {
    const secret = await removeSecret(deps.db, caller.team, params.secretID);
    audit({ target: `secret:${secret.secretId}`, before: { name: secret.name, version: secret.currentVersion } });
    await applySecretChange(deps, secret);
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
