import { AtollError } from '../../../base/error.ts';
import { clientOf } from '../../credential/rules/wrong-credentials.ts';
import type { RateLimiter } from '../../credential/rules/rate-limit.ts';

/** Attempts to prove something of one client in a second on average. */
const attemptsPerSecond = 1;

/** Counts an attempt of the client that has this address, as the edge gives it. Throws `rate_limited`. */
export function takeAttempt({ signInAttempts }: { signInAttempts: RateLimiter }, address: string): void {
  signInAttempts.take(`client ${clientOf(address)}`, attemptsPerSecond, 'attempts to sign in');
}

/**
 * Lets the dashboard's own page begin a session, where nobody on the way can read along: over TLS, and on the machine
 * itself. Throws `forbidden`. Else a stranger's page could sign its visitor in as somebody else.
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
