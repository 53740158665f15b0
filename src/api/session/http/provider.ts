import type { Clock } from '../../../base/clock.ts';
import type { RateLimiter } from '../../credential/rules/rate-limit.ts';
import { ProviderSignIn, ProviderUrl, SignInProvider } from '../../../protocol/api/session.ts';
import { route } from '../../http/route.ts';
import type { OidcProvider } from '../rules/oidc-provider.ts';
import { beginAtProvider, providerName } from '../rules/oidc.ts';
import { requireOwnPage, takeAttempt } from './own-page.ts';

/** `GET /session/provider` */
export const readProviderRoute = route({
  operationId: 'getSignInProvider',
  method: 'GET',
  path: '/session/provider',
  summary: 'Get the identity provider at which people can sign in',
  auth: 'none',
  responses: { 200: { description: 'Its name; null where there is none', schema: SignInProvider } },
  async handle({ oidc }: { oidc: OidcProvider | null }) {
    return { status: 200, body: { name: providerName(oidc) } };
  },
});

/** `POST /session/provider` */
export const beginAtProviderRoute = route({
  operationId: 'beginSignInAtProvider',
  method: 'POST',
  path: '/session/provider',
  summary: 'Begin to sign in at the identity provider',
  auth: 'none',
  noStore: true,
  body: ProviderSignIn,
  strict: true,
  responses: { 200: { description: 'Where the browser goes', schema: ProviderUrl } },
  errors: [403, 404, 429],
  async handle(
    deps: { oidc: OidcProvider | null; seed: Uint8Array; clock: Clock; signInAttempts: RateLimiter },
    { body, sameOrigin, origin, address },
  ) {
    requireOwnPage(sameOrigin, origin);
    takeAttempt(deps, address);
    return { status: 200, body: { url: await beginAtProvider(deps, body.binding, origin) } };
  },
});
