import { Type } from '@sinclair/typebox';
import { CreatedAccessToken, NewAccessToken } from '../../../protocol/api/team.ts';
import { createAccessToken, revokeAccessToken } from '../rules/access-tokens.ts';
import { accessTokenView } from './view.ts';
import { route } from '../../http/route.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { CredentialCache } from '../rules/cache.ts';

/** `POST /access-tokens` */
export const createAccessTokenRoute = route({
  operationId: 'createAccessToken',
  method: 'POST',
  path: '/access-tokens',
  summary: 'Create an access token for the user',
  auth: 'user',
  proof: true,
  noStore: true,
  body: NewAccessToken,
  responses: { 201: { description: 'The token, shown this once', schema: CreatedAccessToken } },
  async handle(deps: { clock: Clock; db: Db }, { caller, body, audit }) {
    const { token, text } = await createAccessToken(deps, caller.user, body.name, { held: caller.held });
    audit({ target: `accessToken:${token.tokenId}`, after: { name: token.name } });
    return { status: 201, body: { ...accessTokenView(token), token: text } };
  },
});

/** `DELETE /access-tokens/{accessTokenID}` */
export const deleteAccessTokenRoute = route({
  operationId: 'deleteAccessToken',
  method: 'DELETE',
  path: '/access-tokens/{accessTokenID}',
  summary: 'Delete an access token; it is refused from the next request on',
  auth: 'user',
  params: Type.Object({ accessTokenID: Type.String() }),
  responses: { 204: { description: 'Revoked' } },
  errors: [404],
  async handle(deps: { credentials: CredentialCache; db: Db }, { caller, params, audit }) {
    audit({ target: `accessToken:${params.accessTokenID}` });
    await revokeAccessToken(deps, caller.user, params.accessTokenID);
    return { status: 204 };
  },
});
