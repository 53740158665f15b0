import { existsSync, readFileSync } from 'node:fs';
import { ifThere } from '../../base/if-there.ts';
import { protectedRange } from '../../protocol/network/network.ts';
import { outgoingMtu } from './rules/outgoing-mtu.ts';

const settings = '/proc/sys/net/ipv6/conf';
/** Links with a smaller MTU carry no IPv6 (RFC 8200, section 5). */
const leastMtu = 1280;
// linux/route.h, ipv6_route.h: of routes that lead nowhere, or to the host itself.
const RTF_REJECT = 0x200;
const RTF_LOCAL = 0x8000_0000;

/**
 * Why sandboxes have no IPv6; undefined if they have it: the host reaches the internet by IPv6, and its kernel
 * forwards packets, for all interfaces or (Linux 6.17) for those that sandboxes need. Making a host forward for all
 * because of sandboxes would make it drop the routes that its own router announces.
 */
export function withoutIpv6(): string | undefined {
  if (!existsSync(settings)) return 'the kernel has no IPv6';
  if (waysOutV6().length === 0) return 'the host has no route to the internet by IPv6';
  if (outgoingMtu() < leastMtu) return `packets of the way out are smaller than ${leastMtu} bytes`;
  const forwardsForAll = readFileSync(`${settings}/all/forwarding`, 'utf8').trim() === '1';
  if (forwardsForAll || existsSync(`${settings}/all/force_forwarding`)) return undefined;
  return 'this kernel forwards IPv6 for all interfaces or none: net.ipv6.conf.all.forwarding is 0';
}

/** Interfaces that lead to public addresses by IPv6 (/proc/net/ipv6_route, or `routes` in its form). */
export function waysOutV6(routes = ifThere(() => readFileSync('/proc/net/ipv6_route', 'utf8'), '')): string[] {
  const names = routes.split('\n').flatMap(row => {
    // Destination, its length, source, its length, next hop, metric, two counters, flags, interface.
    const [destination = '', length = '', , , , , , , flags = '', name = ''] = row.trim().split(/\s+/);
    if (name === '' || name === 'lo' || name.startsWith('at')) return [];
    if ((Number.parseInt(flags, 16) & RTF_REJECT) !== 0 || Number.parseInt(flags, 16) >= RTF_LOCAL) return [];
    const isDefault = Number.parseInt(length, 16) === 0;
    return isDefault || protectedRange(Uint8Array.from(Buffer.from(destination, 'hex'))) === undefined ? [name] : [];
  });
  return [...new Set(names)];
}
