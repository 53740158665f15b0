import * as oauth from 'oauth4webapi';
import { AtollError, messageOf, systemCodeOf } from '../../../base/error.ts';
import type { OidcFile } from '../../../protocol/oidc.ts';

/** What must be known again when somebody comes back from the provider. */
export type Flow = { state: string; nonce: string; verifier: string; redirectUri: string };

/** A person's identity according to the provider. Issuer and subject identify; an address may change its owner. */
export type Stranger = { issuer: string; subject: string; name: string; verifiedEmail: string | null };

/** An identity provider at which people sign in. */
export type OidcProvider = {
  name: string;
  rules: Pick<OidcFile, 'emailDomains' | 'newcomers'>;
  /** Where the browser goes to sign in. Throws `unavailable` where the provider does not answer. */
  urlOf(flow: Flow): Promise<string>;
  /**
   * Exchanges the query of the URL with which a browser came back. Throws `unauthenticated` where the provider or the
   * answer refuses, and `unavailable`.
   */
  redeem(query: URLSearchParams, flow: Flow): Promise<Stranger>;
};

const scope = 'openid email profile';
/** How long the result of discovery is used, ms. */
const discoveryMs = 3600_000;
const requestTimeoutMs = 10_000;
const nameCharactersMax = 128;

type RequestOptions = { signal: AbortSignal; [oauth.allowInsecureRequests]: boolean };

/** The provider of a file. It is not contacted before somebody signs in. */
export function oidcProvider(file: OidcFile): OidcProvider {
  const { clientId, clientSecret, name, emailDomains, newcomers } = file;
  const client: oauth.Client = { client_id: clientId };
  const issuer = new URL(file.issuer);
  const options = (): RequestOptions => ({
    signal: AbortSignal.timeout(requestTimeoutMs),
    // The file is the operator's: plain HTTP there means a provider on a network of their own.
    [oauth.allowInsecureRequests]: issuer.protocol === 'http:',
  });
  let known: { server: oauth.AuthorizationServer; untilMs: number } | undefined;
  const discover = async (): Promise<oauth.AuthorizationServer> => {
    if (known && performance.now() < known.untilMs) return known.server;
    const response = await oauth.discoveryRequest(issuer, options());
    const server = await oauth.processDiscoveryResponse(issuer, response);
    known = { server, untilMs: performance.now() + discoveryMs };
    return server;
  };
  return {
    name,
    rules: { ...(emailDomains && { emailDomains }), ...(newcomers && { newcomers }) },
    async urlOf(flow) {
      const server = await discover().catch(unreachable);
      if (server.authorization_endpoint === undefined) return unreachable('it names no authorization_endpoint');
      return authorizationUrl(server.authorization_endpoint, clientId, flow);
    },
    async redeem(query, { state, nonce, verifier, redirectUri }) {
      const server = await discover().catch(unreachable);
      try {
        const params = oauth.validateAuthResponse(server, client, query, state);
        const authentication = authenticationOf(server, clientSecret);
        const response = await oauth.authorizationCodeGrantRequest(
          server,
          client,
          authentication,
          params,
          redirectUri,
          verifier,
          options(),
        );
        await requireKnownClient(response);
        const expected = { expectedNonce: nonce, requireIdToken: true };
        const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, expected);
        await oauth.validateApplicationLevelSignature(server, response, options());
        return await strangerOf(server, client, tokens, options);
      } catch (error) {
        return refuse(error);
      }
    },
  };
}

async function authorizationUrl(endpoint: string, clientId: string, flow: Flow): Promise<string> {
  const url = new URL(endpoint);
  const query = {
    client_id: clientId,
    redirect_uri: flow.redirectUri,
    response_type: 'code',
    scope,
    state: flow.state,
    nonce: flow.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(flow.verifier),
    code_challenge_method: 'S256',
  };
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
  return url.href;
}

/** By the header, which every provider must accept, unless the provider says that it does not. */
function authenticationOf(server: oauth.AuthorizationServer, secret: string): oauth.ClientAuth {
  const takesHeader = server.token_endpoint_auth_methods_supported?.includes('client_secret_basic') ?? true;
  return takesHeader ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret);
}

/**
 * Throws where the provider rejects the client's secret, e.g. after it was changed there: the person who signs in can't
 * do anything about that, and the operator has to learn of it. Source: RFC 6749, 5.2.
 */
async function requireKnownClient(response: Response): Promise<void> {
  if (response.ok) return;
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : undefined;
  if (response.status !== 401 && error !== 'invalid_client') return;
  throw new AtollError(
    'unavailable',
    'The identity provider refuses the client ID or secret of this installation (invalid_client): its operator has ' +
      'to put the present ones into the file of ATOLL_OIDC_FILE, and start again',
  );
}

/** Addresses and names are in the ID token, or else come from the userinfo endpoint (OpenID Connect Core 1.0, 5.4). */
async function strangerOf(
  server: oauth.AuthorizationServer,
  client: oauth.Client,
  tokens: oauth.TokenEndpointResponse,
  options: () => RequestOptions,
): Promise<Stranger> {
  const claims = oauth.getValidatedIdTokenClaims(tokens);
  if (!claims) throw new Error('the provider has sent no ID token');
  let facts: Record<string, unknown> = claims;
  if (claims['email'] === undefined && server.userinfo_endpoint !== undefined) {
    const response = await oauth.userInfoRequest(server, client, tokens.access_token, options());
    facts = { ...claims, ...(await oauth.processUserInfoResponse(server, client, claims.sub, response)) };
  }
  const { email, email_verified: isVerified, name, preferred_username: username } = facts;
  const verifiedEmail = typeof email === 'string' && isVerified === true ? email.toLowerCase() : null;
  const called = [name, username, verifiedEmail].find(text => typeof text === 'string' && text.trim() !== '');
  return {
    issuer: claims.iss,
    subject: claims.sub,
    name: (typeof called === 'string' ? called : claims.sub).slice(0, nameCharactersMax),
    verifiedEmail,
  };
}

function unreachable(cause: unknown): never {
  throw new AtollError('unavailable', `The identity provider can't be reached: ${messageOf(cause)}`, { cause });
}

/** The browser only learns the kind of the failure; the provider's own message may repeat what was sent to it. */
function refuse(cause: unknown): never {
  if (cause instanceof AtollError) throw cause;
  if (cause instanceof oauth.AuthorizationResponseError)
    throw new AtollError('unauthenticated', `The identity provider did not sign you in (${cause.error})`, { cause });
  // The library's own errors have codes too.
  const code = systemCodeOf(cause);
  if ((code !== '' && !code.startsWith('OAUTH_')) || (cause instanceof Error && cause.name === 'TimeoutError'))
    unreachable(cause);
  throw new AtollError('unauthenticated', "The identity provider's answer does not hold; sign in again", { cause });
}
