import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { AtollError } from '../../base/error.ts';
import { parseAddress, protectedRange } from '../../protocol/network.ts';

/** A webhook's URL in its normal form. An address that deliveries would never go to is refused at once; a name is resolved for each delivery. Throws `invalid`. */
export function checkWebhookUrl(text: string, allowPrivateAddresses: boolean): string {
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) throw new AtollError('invalid', 'url: must be a URL that begins with https:// or http://');
  if (url.username !== '' || url.password !== '') throw new AtollError('invalid', 'url: must not have a user or a password; deliveries are signed instead');
  url.hash = '';
  const host = hostOf(url);
  if (!allowPrivateAddresses && ((isIP(host) && forbiddenRange(host) !== undefined) || /(^|\.)localhost\.?$/.test(host))) {
    throw new AtollError('invalid', `url: ${host} is an address of this machine or of a private network; the operator can allow such`);
  }
  return url.href;
}

/** The host of a URL, an IPv6 address without brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** Why an address is no address of the Internet at large; undefined when it is one. */
export function forbiddenRange(address: string): string | undefined {
  const octets = parseAddress(address.split('%')[0] ?? '');
  if (!octets) return 'not an address';
  return protectedRange(octets) ?? (isOfMachine(octets) ? 'an address of this machine' : undefined);
}

/** A public address of the machine itself is reached past the firewall in front of it. */
export function isOfMachine(octets: Uint8Array, interfaces = networkInterfaces()): boolean {
  return Object.values(interfaces).some(list => list?.some(({ address }) => Bun.deepEquals(parseAddress(address.split('%')[0] ?? ''), octets)));
}
