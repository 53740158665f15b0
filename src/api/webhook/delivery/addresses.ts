import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { AtollError } from '../../../base/error.ts';
import { hostNameOf } from '../../../base/pinned-fetch.ts';
import { forbiddenRange } from '../../../protocol/network/network.ts';

/** The most addresses of a name to try. */
const addressesMax = 4;

/**
 * The addresses to connect to for a URL: those of its name that may be reached. The caller connects to these and does
 * not resolve the name again, so that its answer can't change meanwhile. Throws `unavailable`, `forbidden`.
 */
export async function allowedAddresses(url: URL, allowPrivateAddresses: boolean): Promise<string[]> {
  const host = hostNameOf(url);
  const found = isIP(host) ? [host] : (await lookup(host, { all: true }).catch(() => [])).map(({ address }) => address);
  if (found.length === 0) throw new AtollError('unavailable', `${host} has no address`);
  const allowed = allowPrivateAddresses ? found : found.filter(address => forbiddenRange(address) === undefined);
  if (allowed.length === 0)
    throw new AtollError('forbidden', `${host} has only addresses of this machine or of private networks`);
  return allowed.slice(0, addressesMax);
}
