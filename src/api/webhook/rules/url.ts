import { isIP } from 'node:net';
import { AtollError } from '../../../base/error.ts';
import { hostNameOf } from '../../../base/pinned-fetch.ts';
import { forbiddenRange } from '../../../protocol/network/network.ts';

/**
 * A webhook's URL in its normal form. An address that deliveries could never reach is refused at once; a name is
 * resolved for each delivery. Throws `invalid`.
 */
export function checkWebhookUrl(text: string, allowPrivateAddresses: boolean): string {
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new AtollError('invalid', 'url: must be a URL that begins with https:// or http://');
  if (url.username !== '' || url.password !== '')
    throw new AtollError('invalid', 'url: must not have a user or a password; deliveries are signed instead');
  url.hash = '';
  const host = hostNameOf(url);
  if (
    !allowPrivateAddresses &&
    ((isIP(host) && forbiddenRange(host) !== undefined) || /(^|\.)localhost\.?$/.test(host))
  ) {
    throw new AtollError(
      'invalid',
      `url: ${host} is an address of this machine or of a private network; the operator can allow such`,
    );
  }
  return url.href;
}
