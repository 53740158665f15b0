import { AtollError } from '../../../base/error.ts';
import { clientOf } from '../../credential/rules/wrong-credentials.ts';
import type { RateLimiter } from '../../credential/rules/rate-limit.ts';

/** Attempts of one client to prove something, per second on average. */
const attemptsPerSecond = 1;

/** Counts an attempt of the client with this address, as the edge passes it. Throws `rate_limited`. */
export function takeAttempt({ signInAttempts }: { signInAttempts: RateLimiter }, address: string): void {
  signInAttempts.take(`client ${clientOf(address)}`, attemptsPerSecond, 'attempts to sign in');
}

/**
 * Lets only the dashboard's own page begin a session, and only where nobody can listen in: over TLS, and on the machine
 * itself. Otherwise a stranger's page could sign its visitor in as somebody else. Throws `forbidden`.
 */
export function requireOwnPage(sameOrigin: boolean, origin: string): void {
  if (!sameOrigin) throw new AtollError('forbidden', "Signing in is for the dashboard's own page in a browser");
  const { protocol, hostname } = new URL(origin);
  if (protocol === 'https:' || hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '127.0.0.1')
    return;
  throw new AtollError(
    'forbidden',
    `Over plain HTTP to ${hostname} anybody on the way could take the session: open a TLS port (ATOLL_TLS_PORT) ` +
      'and sign in there, or forward a port to localhost',
  );
}
