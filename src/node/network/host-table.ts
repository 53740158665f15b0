import { readFileSync } from 'node:fs';
import { userIdOf } from '../../base/part-users.ts';
import { globalUnicast, protectedNetworks, tunnels } from '../../protocol/network.ts';
import { innerAddress, proxyListenAddress, proxyNetwork, slotNetwork, slotOf, slotsMax } from '../layout.ts';
import type { VerdictMap } from './egress/link-verdicts.ts';
import type { PolicyChains } from './egress/policy-chains.ts';
import { proxyOf } from './egress/proxies.ts';
import type { HostFeatures } from './host-features.ts';

/** Ports of the first egress proxy on the address of all; the others have the next ones. */
export const proxyPort = 3128;
export const resolverPort = 5353;

/** New connections that one sandbox may open through its egress proxy: each costs the process some time. */
export const proxyConnections = { perSecond: 500, burst: 2000 } as const;
/** Packets of questions to name servers that one sandbox may send through its egress proxy. */
export const proxyQuestions = { perSecond: 500, burst: 1000 } as const;
/**
 * Where a sandbox's packets go next, by link: the host has a neighbour for each, and a table of them that all share. New
 * ones are rare, since what is far away goes by the same gateway.
 */
export const nextHops = { perSecond: 1, burst: 16, rememberedSeconds: 60, rememberedMax: 16_384 } as const;

/** Pieces of packets from one sandbox: with all that it can send, it fills about a third of the host's room for them. */
export const fragments = { perSecond: 16, burst: 128 } as const;
/** Addresses of registries that the operator allows builders to reach: kept as long as a job may run. */
export const builderHosts = { max: 4096, seconds: 2 * 3600 } as const;
/** New connections of one sandbox, where the kernel can't count those that it has. */
const newFlows = { perSecond: 20, burst: 1000 } as const;

/** What reports of packets that are one connection too many begin with. */
export const flowsPrefix = 'flows';

export type HostTableOptions = {
  installation: number;
  /** Addresses at which sandboxes look names up. */
  resolvers: string[];
  /** How many egress proxies there are; they share the slots. */
  proxies: number;
  /** Connections of one sandbox that the host keeps track of at a time. */
  flowsMax: number;
  /** What the host's kernel can do. */
  features: HostFeatures;
  /** Links that are there. */
  linksNow: string[];
  /** What each sandbox that runs may do. */
  policies: { interfaceName: string; chains: PolicyChains }[];
};

export const tableOf = (installation: number): string => `atoll${installation}`;

/** Group under which the kernel reports refused packets of an installation (NFLOG). */
export const refusalGroup = (installation: number): number => 0xa700 + installation;

/**
 * The packet rules of one installation, one table, replaced as a whole.
 *
 * Inside, all sandboxes have one address. `prerouting` writes the slot's address over it as a packet leaves its link, and
 * `postrouting` the other way as one arrives, both without state: in between, each sandbox has an address of its own.
 * That also settles spoofing: a packet with any other source is dropped. The price: an ICMP error quotes the address
 * between, so the sandbox ignores it; connections are refused by reset instead, and segment sizes are set on the way.
 *
 * `outgoing_by_link` says which chain decides about what a sandbox sends; a link without an entry reaches nothing.
 * `incoming_by_link` says the same about answers. Every packet is decided about, also of connections that exist: a changed
 * policy is in force with the next one.
 * Interfaces that forward only because sandboxes need it, `ways_out`, do so for them alone.
 * What the host itself has to say about a packet of a sandbox (that its time to live is over) would tell the host's addresses,
 * and is dropped; so is what it would send to the address inside, which leads out by the default route.
 *
 * `redirect_by_link` says which chain turns new connections to the egress proxy. The proxy connects from addresses of its own,
 * one for each slot, and `output` keeps those away from the host and from everything protected, whatever the proxy does.
 * Likewise builders, by their user: whatever one does, it reaches public addresses, and `builder_hosts`, which the operator allows.
 */
export function hostTable({ installation, resolvers, proxies, flowsMax, features, linksNow, policies }: HostTableOptions): string {
  const links = `"at${installation}-*"`;
  const slots = Array.from({ length: slotsMax }, (_, number) => slotOf(installation, number));
  const table = tableOf(installation);
  const listen = proxyListenAddress(installation);
  const shared = new Map(policies.map(({ chains }) => [chains.key, chains.declarations]));
  const numbers = Array.from({ length: proxies }, (_, index) => index);
  const byProxy = (chain: string) => elements(slots.map(slot => `"${slot.interfaceName}" : goto ${chain}_${proxyOf(slot.number, proxies)}`));
  const verdicts = (kind: VerdictMap) =>
    elements(policies.flatMap(({ interfaceName, chains }) => (chains.chains[kind] !== undefined ? [`"${interfaceName}" : goto ${chains.chains[kind]}`] : [])));
  return `
table inet ${table}
delete table inet ${table}
table inet ${table} {
  map slot_address {
    type ifname : ipv4_addr
    ${elements(slots.map(slot => `"${slot.interfaceName}" : ${slot.address}`))}
  }
  set protected {
    type ipv4_addr
    flags interval
    ${elements(protectedNetworks)}
  }
  set resolvers {
    type ipv4_addr
    ${elements(resolvers)}
  }
  set refused {
    type ifname
    counter
    ${elements(slots.map(slot => `"${slot.interfaceName}"`))}
  }
  set refused_lately {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  set builder_hosts {
    type ipv4_addr . inet_service
    size ${builderHosts.max}
    flags timeout
    timeout ${builderHosts.seconds}s
  }
  set builder_hosts_v6 {
    type ipv6_addr . inet_service
    size ${builderHosts.max}
    flags timeout
    timeout ${builderHosts.seconds}s
  }
  chain open {
    tcp flags syn tcp option maxseg size set rt mtu
    accept
  }
  chain let_in {
    accept
  }
  chain refuse {
    iifname @refused
    update @refused_lately { iifname limit rate 5/second burst 20 packets } log group ${refusalGroup(installation)} snaplen 64
    meta l4proto tcp reject with tcp reset
    drop
  }
${numbers.map(number => `  chain to_proxy_${number} {
    meta l4proto tcp dnat ip to ${listen}:${proxyPort + number}
  }
  chain to_resolver_${number} {
    meta l4proto { tcp, udp } dnat ip to ${listen}:${resolverPort + number}
  }
`).join('')}  map proxy_by_link {
    type ifname : verdict
    ${byProxy('to_proxy')}
  }
  map resolver_by_link {
    type ifname : verdict
    ${byProxy('to_resolver')}
  }
  chain to_proxy {
    iifname vmap @proxy_by_link
  }
  chain to_resolver {
    iifname vmap @resolver_by_link
  }
${flowRules(flowsMax, features, refusalGroup(installation))}
  set ways_out {
    type ifname
  }
  set connections_to_proxy {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  set questions_to_proxy {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  set next_hops {
    type ifname . ipv4_addr
    size ${nextHops.rememberedMax}
    flags dynamic, timeout
    timeout ${nextHops.rememberedSeconds}s
  }
  set next_hops_lately {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  chain next_hop {
    iifname . rt ip nexthop @next_hops update @next_hops { iifname . rt ip nexthop } return
    update @next_hops_lately { iifname limit rate over ${nextHops.perSecond}/second burst ${nextHops.burst} packets } drop
    update @next_hops { iifname . rt ip nexthop }
  }
${[...shared.values()].join('')}
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
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname ${links} jump from_sandbox
  }
  chain from_sandbox {
    meta nfproto ipv6 drop
    ip saddr != ${innerAddress} drop
    ip saddr set iifname map @slot_address
  }
  chain destination_nat {
    type nat hook prerouting priority dstnat; policy accept;
    iifname ${links} iifname vmap @redirect_by_link
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname ${links} jump outgoing
    oifname ${links} jump incoming
    iifname @ways_out oifname != ${links} ct state new jump not_for_sandboxes
  }
  chain not_for_sandboxes {
    ct status dnat return
    drop
  }
  chain outgoing {
    meta nfproto ipv6 drop
    oifname "at*" drop
    ip daddr @protected goto refuse
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
  chain input {
    type filter hook input priority filter; policy accept;
    iifname ${links} jump to_host
    ip daddr { ${proxyNetwork(installation)}, ${listen} } iifname != "lo" ct state new drop
  }
  chain to_host {
    ct status dnat ip daddr ${listen} tcp dport { ${proxyPort}-${proxyPort + proxies - 1}, ${resolverPort}-${resolverPort + proxies - 1} } goto proxy_connection
    ct status dnat ip daddr ${listen} udp dport ${resolverPort}-${resolverPort + proxies - 1} goto proxy_question
    goto refuse
  }
  chain proxy_connection {
    ct state != new accept
    update @connections_to_proxy { iifname limit rate over ${proxyConnections.perSecond}/second burst ${proxyConnections.burst} packets } drop
    jump new_flow
    accept
  }
  chain proxy_question {
    update @questions_to_proxy { iifname limit rate over ${proxyQuestions.perSecond}/second burst ${proxyQuestions.burst} packets } drop
    ct state new jump new_flow
    accept
  }
  chain output {
    type filter hook output priority filter; policy accept;
    oifname ${links} meta l4proto icmp drop
    ip daddr ${innerAddress} drop
    oifname ${links} ct state new drop
    ip saddr ${proxyNetwork(installation)} jump from_proxy
    meta skuid ${userIdOf('builder', installation)} jump from_builder
  }
  chain from_proxy {
    ip daddr @protected reject
    fib daddr type != unicast reject
  }
  chain from_builder {
    meta l4proto != tcp drop
    ct state established accept
    ip daddr . tcp dport @builder_hosts accept
    ip6 daddr . tcp dport @builder_hosts_v6 accept
    ip daddr @protected reject with tcp reset
    meta nfproto ipv6 ip6 daddr != ${globalUnicast} reject with tcp reset
    ip6 daddr { ${tunnels.join(', ')} } reject with tcp reset
    fib daddr type != unicast reject with tcp reset
  }
  chain source_nat {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${slotNetwork(installation)} masquerade
  }
  chain postrouting {
    type filter hook postrouting priority 300; policy accept;
    oifname ${links} ip daddr ${slotNetwork(installation)} ip daddr set ${innerAddress}
  }
}
${linkTable(installation, linksNow)}`;
}

/** The chain that looks at what comes by a link; names of chains have no other signs. */
export function chainOfLink(link: string): string {
  return `in_${link.replace('-', '_')}`;
}

/** The chain that drops what is not IPv4. */
export const onlyIpv4 = 'only_ipv4';

/**
 * What comes from a sandbox and is not IPv4 (ARP, IPv6, VLAN tags, whatever else) ends where it arrives, before anything of the
 * host's looks at it. Of packets in pieces there are few: the host keeps pieces until the last has come, or half a minute, and has
 * 4 MiB for all. Each link has a chain that leads here, made with the link (`guardLink`).
 */
function linkTable(installation: number, links: string[]): string {
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
    ip frag-off & 0x3fff != 0 update @fragments { iifname limit rate over ${fragments.perSecond}/second burst ${fragments.burst} packets } drop
  }
${links.map(link => `  chain ${chainOfLink(link)} {
    type filter hook ingress device "${link}" priority 0; policy accept;
    goto ${onlyIpv4}
  }
`).join('')}}
`;
}

/**
 * Bounds the connections that the host keeps track of for each link: the table is one for all, the host's own included.
 * Kernels that can't count them get a limit of new ones, which lasts less.
 */
function flowRules(flowsMax: number, { countsFlows }: HostFeatures, group: number): string {
  const over = countsFlows ? `ct count over ${flowsMax}` : `limit rate over ${newFlows.perSecond}/second burst ${newFlows.burst} packets`;
  return `  set flows {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  chain new_flow {
    add @flows { iifname ${over} } goto too_many_flows
  }
  chain too_many_flows {
    iifname @refused
    update @refused_lately { iifname limit rate 5/second burst 20 packets } log prefix "${flowsPrefix}" group ${group} snaplen 64
    drop
  }
`;
}

function elements(list: string[]): string {
  return list.length > 0 ? `elements = { ${list.join(', ')} }` : '';
}

/** The largest packet that the way out takes; links into sandboxes use the same. */
export function outgoingMtu(): number {
  const line = readFileSync('/proc/net/route', 'utf8').split('\n').find(row => row.split('\t')[1] === '00000000');
  try {
    return Number(readFileSync(`/sys/class/net/${line?.split('\t')[0]}/mtu`, 'utf8'));
  } catch {
    return 1500; // no way out
  }
}
