import { slotsMax } from '../../layout.ts';
import { tableOf } from './table-name.ts';

/**
 * Pieces of packets from one sandbox: with all that it can send, it fills about a third of the host's room for them.
 */
export const fragments = { perSecond: 16, burst: 128 } as const;

/** The chain that looks at what comes by a link; names of chains have no other signs. */
export function chainOfLink(link: string): string {
  return `in_${link.replace('-', '_')}`;
}

/** The chain that drops what is not IPv4. */
export const onlyIpv4 = 'only_ipv4';

/**
 * What comes from a sandbox and is not IPv4 (ARP, IPv6, VLAN tags, whatever else) ends where it arrives, before
 * anything of the host's looks at it. Of packets in pieces there are few: the host keeps pieces until the last has
 * come, or half a minute, and has 4 MiB for all. Each link has a chain that leads here, made with the link
 * (`guardLink`).
 */
export function linkTable(installation: number, links: string[]): string {
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
  chain ${onlyIpv4} {
    meta protocol != ip drop
    ip frag-off & 0x3fff != 0 update @fragments { \
      iifname limit rate over ${fragments.perSecond}/second burst ${fragments.burst} packets } drop
  }
${links
  .map(
    link => `  chain ${chainOfLink(link)} {
    type filter hook ingress device "${link}" priority 0; policy accept;
    goto ${onlyIpv4}
  }
`,
  )
  .join('')}}
`;
}
