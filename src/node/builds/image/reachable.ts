import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { AtollError } from '../../../base/error.ts';
import { hostNameOf } from '../../../base/pinned-fetch.ts';
import type { BuilderQuestion } from '../../../protocol/builder.ts';
import { forbiddenRange } from '../../../protocol/network/network.ts';

/** How many addresses of a name are tried. */
const addressesMax = 4;

/**
 * The addresses at which the platform's own network may reach a host that a stranger chose: none of the machine or of
 * private networks, unless the operator allows the host (with its port). Errors: `forbidden`, `unavailable`.
 */
export async function reachableAddresses(
  { host, isSecure }: BuilderQuestion['resolve'],
  allowedHosts: ReadonlySet<string>,
): Promise<string[]> {
  const url = URL.parse(`https://${host}/`);
  const isAllowed = allowedHosts.has(host);
  if (!url || url.username !== '' || url.pathname !== '/')
    throw new AtollError('unavailable', 'an image is where there is no host');
  if (!isAllowed && !isSecure)
    throw new AtollError('forbidden', `${host} is not reached without TLS; the operator can allow it`);
  const name = hostNameOf(url);
  const found = isIP(name) ? [name] : (await lookup(name, { all: true }).catch(() => [])).map(({ address }) => address);
  if (found.length === 0)
    throw new AtollError(
      'unavailable',
      `${name}, where the image comes from, has no address that this machine finds; the operator's images.json can ` +
        'name a mirror, or a file with the image',
    );
  const allowed = isAllowed ? found : found.filter(address => forbiddenRange(address) === undefined);
  if (allowed.length === 0)
    throw new AtollError('forbidden', `${name} has an address that builds may not reach; the operator can allow it`);
  return allowed.slice(0, addressesMax);
}
