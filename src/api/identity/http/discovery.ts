import { freeObject } from '../../../protocol/api/primitives.ts';
import { route } from '../../http/route.ts';
import type { Identity } from '../rules/identity.ts';

const jwksPath = '/.well-known/jwks.json';

/** `GET /.well-known/openid-configuration` */
export const discoveryRoute = route({
  operationId: 'getIdentityConfiguration',
  method: 'GET',
  path: '/.well-known/openid-configuration',
  summary: 'Get what verifiers of identity tokens need to know (OpenID Connect Discovery 1.0)',
  auth: 'none',
  responses: { 200: { description: 'The issuer and where its keys are', schema: freeObject() } },
  async handle({ identity }: { identity: Identity }) {
    const { issuer } = identity;
    const body = {
      issuer,
      jwks_uri: `${issuer}${jwksPath}`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
      claims_supported: ['iss', 'sub', 'aud', 'iat', 'nbf', 'exp', 'sandbox_id', 'team_id', 'template_id'],
    };
    return { status: 200, body };
  },
});

/** `GET /.well-known/jwks.json` */
export const jwksRoute = route({
  operationId: 'getIdentityKeys',
  method: 'GET',
  path: jwksPath,
  summary: 'Get the public keys that verify identity tokens (RFC 7517): of last month, this one and the next',
  auth: 'none',
  responses: { 200: { description: 'The keys', schema: freeObject() } },
  async handle({ identity }: { identity: Identity }) {
    return { status: 200, body: { keys: identity.publicKeys() } };
  },
});
