import { AtollError } from '../../base/error.ts';
import type { Caller } from '../credential/caller.ts';
import { isSameOrigin, sessionOf } from '../session/cookie.ts';
import { authenticate } from '../credential/rules/authenticate.ts';
import type { AuthenticationDeps, Credentials } from '../credential/rules/authenticate.ts';
import { waysOf } from '../http/auth.ts';
import type { RateLimiter } from '../credential/rules/rate-limit.ts';
import { countWrongCredential } from '../credential/rules/wrong-credentials.ts';
import type { Route } from '../http/route.ts';
import { admit } from './admit.ts';

/**
 * The caller of a route, or null where the route needs none. `address`: of the client. Throws `unauthenticated`,
 * `forbidden`, and `rate_limited` instead of the first to a client that has sent too many wrong credentials.
 */
export async function authenticateRequest(
  deps: AuthenticationDeps & { wrongCredentials: RateLimiter },
  route: Pick<Route, 'auth' | 'method' | 'role' | 'proof'>,
  headers: Headers,
  address: string,
): Promise<Caller | null> {
  if (route.auth === 'none') return null;
  const readsOrRemoves = route.method === 'GET' || route.method === 'DELETE';
  const credentials = credentialsOf(headers);
  let caller: Caller;
  try {
    caller = await authenticate(deps, credentials, waysOf[route.auth], readsOrRemoves);
  } catch (error) {
    const { apiKey, bearer, adminToken, session } = credentials;
    if (apiKey !== null || bearer !== null || adminToken !== null || session !== null)
      countWrongCredential(deps.wrongCredentials, address, error);
    throw error;
  }
  admit(deps, route, caller);
  return caller;
}

/**
 * Whether a caller that was admitted before would still be admitted, for answers that go on. A failing database throws.
 */
export async function isStillLetIn(
  deps: AuthenticationDeps,
  route: Pick<Route, 'auth' | 'role' | 'proof'>,
  headers: Headers,
): Promise<boolean> {
  if (route.auth === 'none') return true;
  try {
    admit(deps, route, await authenticate(deps, credentialsOf(headers), waysOf[route.auth], true));
    return true;
  } catch (error) {
    if (error instanceof AtollError && (error.code === 'unauthenticated' || error.code === 'forbidden')) return false;
    throw error;
  }
}

function credentialsOf(headers: Headers): Credentials {
  const bearer = /^bearer\s+(\S+)\s*$/i.exec(headers.get('authorization') ?? '');
  return {
    apiKey: headers.get('x-api-key'),
    bearer: bearer?.[1] ?? null,
    adminToken: headers.get('x-admin-token'),
    teamId: headers.get('x-team-id'),
    session: isSameOrigin(headers) ? sessionOf(headers) : null,
  };
}
