import { globalUnicast, tunnels } from '../../../protocol/network/network.ts';
import { innerAddress, innerAddressV6, slotNetwork, slotNetworkV6, slotsMax } from '../../layout.ts';
import type { Guards } from '../forwarding.ts';
import { elements } from './elements.ts';
import type { VerdictMap } from './link-verdicts.ts';
import type { PolicyChains } from './policy-chains.ts';

/**
 * Limits the next hops of a sandbox's packets, by link: the host has a neighbour for each, in a table that all links
 * share. New ones are rare, because packets to distant addresses go by the same gateway.
 */
export const nextHops = { perSecond: 1, burst: 16, rememberedSeconds: 60, rememberedMax: 16_384 } as const;

/**
 * Limits what a sandbox sends past its proxy, in packets as the kernel hands them down: TCP comes in pieces of up to
 * 64 KiB, and each counts as one. Packets beyond the limit are dropped before they are judged, translated and given to
 * a device.
 */
export const packetsOut = { perSecond: 20_000, burst: 20_000 } as const;

/**
 * Inside, all sandboxes have one address. `prerouting` replaces it by the slot's address as a packet leaves the link,
 * and `postrouting` does the reverse as one arrives, both without state: in between, each sandbox has an address of
 * its own. That also prevents spoofing: a packet with any other source is dropped. The price: an ICMP error quotes the
 * address in between, so the sandbox ignores it; connections are refused by reset instead, and segment sizes are set
 * on the way. IPv6 works the same way; fragments pass only once they are reassembled, and packets with further headers
 * do not pass.
 */
export function addressChains(
  installation: number,
  links: string,
  slots: { interfaceName: string; address: string; addressV6: string }[],
  ipv6: boolean,
): string {
  return `  map slot_address {
    type ifname : ipv4_addr
    ${elements(slots.map(slot => `"${slot.interfaceName}" : ${slot.address}`))}
  }
  map slot_address_v6 {
    type ifname : ipv6_addr
    ${elements(slots.map(slot => `"${slot.interfaceName}" : ${slot.addressV6}`))}
  }
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname ${links} jump from_sandbox
  }
  chain from_sandbox {
    meta nfproto ipv6 ${ipv6 ? 'goto from_sandbox_v6' : 'drop'}
    ip saddr != ${innerAddress} drop
    ip saddr set iifname map @slot_address
  }
  chain from_sandbox_v6 {
    ip6 saddr != ${innerAddressV6} drop
    ip6 nexthdr != { tcp, udp, icmpv6 } drop
    ip6 nexthdr icmpv6 icmpv6 type != echo-request drop
    ip6 saddr set iifname map @slot_address_v6
  }
  chain source_nat {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${slotNetwork(installation)} masquerade
    ip6 saddr ${slotNetworkV6(installation)} masquerade
  }
  chain postrouting {
    type filter hook postrouting priority 300; policy accept;
    oifname ${links} ip daddr ${slotNetwork(installation)} ip daddr set ${innerAddress}
    oifname ${links} ip6 daddr ${slotNetworkV6(installation)} ip6 daddr set ${innerAddressV6}
  }
`;
}

/**
 * `outgoing_by_link` says which chain decides about what a sandbox sends; a link without an entry reaches nothing.
 * `incoming_by_link` says the same about answers, and `redirect_by_link` says which chain redirects new connections to
 * the egress proxy.
 */
export function policyMaps(policies: { interfaceName: string; chains: PolicyChains }[]): string {
  const shared = new Map(policies.map(({ chains }) => [chains.key, chains.declarations]));
  const verdicts = (kind: VerdictMap) =>
    elements(
      policies.flatMap(({ interfaceName, chains }) =>
        chains.chains[kind] !== undefined ? [`"${interfaceName}" : goto ${chains.chains[kind]}`] : [],
      ),
    );
  return `${[...shared.values()].join('')}
  map outgoing_by_link {
    type ifname : verdict
    ${verdicts('outgoing')}
  }
  map incoming_by_link {
    type ifname : verdict
    ${verdicts('incoming')}
  }
  map redirect_by_link {
    type ifname : verdict
    ${verdicts('redirect')}
  }
`;
}

/** These chains count the neighbours of the host by which a link's packets leave. */
const nextHopChains = `  set next_hops {
    type ifname . ipv4_addr
    size ${nextHops.rememberedMax}
    flags dynamic, timeout
    timeout ${nextHops.rememberedSeconds}s
  }
  set next_hops_v6 {
    type ifname . ipv6_addr
    size ${nextHops.rememberedMax}
    flags dynamic, timeout
    timeout ${nextHops.rememberedSeconds}s
  }
  set next_hops_lately {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  chain few_next_hops {
    update @next_hops_lately { iifname limit rate over ${nextHops.perSecond}/second burst ${nextHops.burst} packets } \
      drop
  }
  chain next_hop_v6 {
    iifname . rt ip6 nexthop @next_hops_v6 update @next_hops_v6 { iifname . rt ip6 nexthop } return
    jump few_next_hops
    update @next_hops_v6 { iifname . rt ip6 nexthop }
  }
  chain next_hop {
    meta nfproto ipv6 goto next_hop_v6
    iifname . rt ip nexthop @next_hops update @next_hops { iifname . rt ip nexthop } return
    jump few_next_hops
    update @next_hops { iifname . rt ip nexthop }
  }
`;

/**
 * The traffic between sandboxes and everything else. Every packet is judged, even of existing connections: a changed
 * policy is in force with the next packet. Interfaces in `ways_out`, which forward only because sandboxes need it, do
 * so for sandboxes alone.
 */
export function forwardChains(links: string, ipv6: boolean, guards: Guards): string {
  const named = (names: string[]) => elements(names.map(name => `"${name}"`));
  return `  set ways_out {
    type ifname
    ${named(guards.ways_out)}
  }
  set ways_out_v6 {
    type ifname
    ${named(guards.ways_out_v6)}
  }
${nextHopChains}  set packets_lately {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  chain destination_nat {
    type nat hook prerouting priority dstnat; policy accept;
    iifname ${links} iifname vmap @redirect_by_link
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname ${links} jump outgoing
    oifname ${links} jump incoming
    meta nfproto ipv4 iifname @ways_out oifname != ${links} ct state new jump not_for_sandboxes
    meta nfproto ipv6 iifname @ways_out_v6 oifname != ${links} ct state new jump not_for_sandboxes
  }
  chain not_for_sandboxes {
    ct status dnat return
    drop
  }
  chain outgoing {
    update @packets_lately { iifname \
      limit rate over ${packetsOut.perSecond}/second burst ${packetsOut.burst} packets } drop
${ipv6 ? '' : '    meta nfproto ipv6 drop\n'}    oifname "at*" drop
    ip daddr @protected goto refuse
    ip6 daddr != ${globalUnicast} goto refuse
    ip6 daddr { ${tunnels.join(', ')} } goto refuse
    ct state new jump new_flow
    ct state new jump next_hop
    iifname vmap @outgoing_by_link
    goto refuse
  }
  chain incoming {
    ct state != established drop
    oifname vmap @incoming_by_link
    drop
  }
`;
}
