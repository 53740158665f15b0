import { innerAddressV6, slotsMax } from '../../layout.ts';
import { tableOf } from './table-name.ts';

/** Fragments from one sandbox: with all that it can send, it fills about a third of the host's room for them. */
export const fragments = { perSecond: 16, burst: 128 } as const;

/**
 * The number of the IPv6 fragment header (RFC 8200 4.5). nft looks up names that it does not know itself in
 * /etc/protocols, which bare machines and images do not have.
 */
const fragmentHeader = 44;

/** The chain that looks at what comes by a link; names of chains allow no other characters. */
export function chainOfLink(link: string): string {
  return `in_${link.replace('-', '_')}`;
}

/** The chain that drops everything that is not a sandbox's packet. */
export const ofSandboxes = 'of_sandboxes';

/**
 * What comes from a sandbox and is not IPv4 (ARP, VLAN tags, anything else) is dropped where it arrives, before the
 * host looks at it. From IPv6, if sandboxes have it, TCP, UDP and echo requests pass from their one address, without
 * further headers: nothing about a neighbour, router or group of the link passes. Fragments are limited: the host
 * keeps them until the last has come, or for half a minute, and has 4 MiB for all. Each link has a chain that leads
 * here, made with the link (`guardLink`).
 */
export function linkTable(installation: number, links: string[], ipv6: boolean): string {
  const table = tableOf(installation);
  return `
table netdev ${table}
delete table netdev ${table}
table netdev ${table} {
  set fragments {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  chain few_fragments {
    update @fragments { iifname limit rate over ${fragments.perSecond}/second burst ${fragments.burst} packets } drop
  }
  chain ipv6 {
    ip6 saddr != ${innerAddressV6} drop
    ip6 daddr { fe80::/10, ff00::/8 } drop
    ip6 nexthdr != { tcp, udp, icmpv6, ${fragmentHeader} } drop
    ip6 nexthdr icmpv6 icmpv6 type != echo-request drop
    ip6 nexthdr ${fragmentHeader} jump few_fragments
  }
  chain ${ofSandboxes} {
${ipv6 ? '    meta protocol ip6 goto ipv6\n' : ''}    meta protocol != ip drop
    ip frag-off & 0x3fff != 0 jump few_fragments
  }
${links
  .map(
    link => `  chain ${chainOfLink(link)} {
    type filter hook ingress device "${link}" priority 0; policy accept;
    goto ${ofSandboxes}
  }
`,
  )
  .join('')}}
`;
}
