import { AtollError } from '../../../base/error.ts';
import { parseAddress } from '../../../protocol/network/network.ts';
import type { RateLimiter } from './rate-limit.ts';

/**
 * Wrong credentials per second that one client may send, on average over the time for which a `RateLimiter` lets
 * callers save up.
 */
export const wrongCredentialsPerSecond = 5;
/** An IPv6 client has a whole network, not one address. */
const networkBytesOfIpv6 = 8;

/**
 * Counts a request with wrong credentials against its client. Correct ones are looked up first, so they are never held
 * up by others who send wrong ones from the same address. `address`: of the client, as the edge passes it; empty for a
 * connection to the API's own socket, which comes from this machine. Throws `rate_limited` beyond the rate.
 */
export function countWrongCredential(limiter: RateLimiter, address: string, error: unknown): void {
  if (address === '' || !(error instanceof AtollError) || error.code !== 'unauthenticated') return;
  limiter.take(clientOf(address), wrongCredentialsPerSecond, 'wrong credentials');
}

/**
 * The client behind a request's address, as the edge passes it. Behind a proxy that the edge trusts, it is the last
 * address that the proxy names, and the proxy comes after it; the client may have made up what comes before.
 */
export function clientOf(address: string): string {
  const addresses = address.split(',').map(text => text.trim());
  const client = addresses.at(-2) ?? addresses.at(-1) ?? '';
  const bytes = parseAddress(client);
  return bytes?.length === 16 ? Buffer.from(bytes.subarray(0, networkBytesOfIpv6)).toString('hex') : client;
}
