import { Type } from '@sinclair/typebox';
import { CreatedAccessToken, NewAccessToken } from '../../protocol/api/team.ts';
import { createAccessToken, revokeAccessToken } from '../app/access-tokens.ts';
import { accessTokenView } from './credential-view.ts';
import { route } from './route.ts';

export const createAccessTokenRoute = route({
  operationId: 'createAccessToken',
  method: 'POST',
  path: '/access-tokens',
  summary: 'A new access token of the user',
  auth: 'user',
  noStore: true,
  body: NewAccessToken,
  responses: { 201: { description: 'The token, shown this once', schema: CreatedAccessToken } },
  async handle(app, { caller, body, note }) {
    const { token, text } = await createAccessToken(app, caller.user, body.name);
    note({ target: `accessToken:${token.tokenId}`, after: { name: token.name } });
    return {
      status: 201,
      body: { ...accessTokenView(token), token: text },
    };
  },
});

export const deleteAccessTokenRoute = route({
  operationId: 'deleteAccessToken',
  method: 'DELETE',
  path: '/access-tokens/{accessTokenID}',
  summary: 'Revoke an access token: it is refused from the next request on',
  auth: 'user',
  params: Type.Object({ accessTokenID: Type.String() }),
  responses: { 204: { description: 'Revoked' } },
  errors: [400, 404],
  async handle(app, { caller, params, note }) {
    note({ target: `accessToken:${params.accessTokenID}` });
    await revokeAccessToken(app, caller.user, params.accessTokenID);
    return { status: 204 };
  },
});
