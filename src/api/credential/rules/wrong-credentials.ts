import { AtollError } from '../../../base/error.ts';
import { parseAddress } from '../../../protocol/network/network.ts';
import type { RateLimiter } from './rate-limit.ts';

/** Wrong credentials that one client may send a second, on average over the time that a `RateLimiter` lets save up. */
export const wrongCredentialsPerSecond = 5;
/** A client has an IPv6 network of its own, and not one address. */
const networkBytesOfIpv6 = 8;

/**
 * Counts a request whose credentials are wrong against its client. Right ones are never held up, whoever else sends
 * wrong ones from the same address: they are looked up first. `address`: of the client, as the edge gives it; empty for
 * who connects to the API's own socket, and so is on the machine. Throws `rate_limited` beyond the rate.
 */
export function countWrongCredential(limiter: RateLimiter, address: string, error: unknown): void {
  if (address === '' || !(error instanceof AtollError) || error.code !== 'unauthenticated') return;
  limiter.take(clientOf(address), wrongCredentialsPerSecond, 'wrong credentials');
}

/**
 * The client that an address of a request, as the edge gives it, stands for. Behind a proxy that the edge trusts, it is
 * the last address that the proxy names, and the proxy comes after it; what comes before the client may have made up.
 */
export function clientOf(address: string): string {
  const addresses = address.split(',').map(text => text.trim());
  const client = addresses.at(-2) ?? addresses.at(-1) ?? '';
  const bytes = parseAddress(client);
  return bytes?.length === 16 ? Buffer.from(bytes.subarray(0, networkBytesOfIpv6)).toString('hex') : client;
}
