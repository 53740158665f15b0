import { readFileSync } from 'node:fs';
import { protectedNetworks } from '../../protocol/network.ts';
import { innerAddress, proxyListenAddress, proxyNetwork, slotNetwork, slotOf, slotsMax } from '../layout.ts';
import type { VerdictMap } from './egress/link-verdicts.ts';
import type { PolicyChains } from './egress/policy-chains.ts';

/** Ports of the egress proxy on its own address. */
export const proxyPort = 3128;
export const resolverPort = 5353;

export type HostTableOptions = {
  installation: number;
  /** Addresses at which sandboxes look names up. */
  resolvers: string[];
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
 * `redirect_by_link` says which chain turns new connections to the egress proxy. The proxy connects from addresses of its own,
 * one for each slot, and `output` keeps those away from the host and from everything protected, whatever the proxy does.
 */
export function hostTable({ installation, resolvers, policies }: HostTableOptions): string {
  const links = `"at${installation}-*"`;
  const slots = Array.from({ length: slotsMax }, (_, number) => slotOf(installation, number));
  const table = tableOf(installation);
  const listen = proxyListenAddress(installation);
  const shared = new Map(policies.map(({ chains }) => [chains.key, chains.declarations]));
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
  chain to_proxy {
    meta l4proto tcp dnat ip to ${listen}:${proxyPort}
  }
  chain to_resolver {
    meta l4proto { tcp, udp } dnat ip to ${listen}:${resolverPort}
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
  }
  chain outgoing {
    meta nfproto ipv6 drop
    oifname "at*" drop
    ip daddr @protected goto refuse
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
    ct status dnat ip daddr ${listen} tcp dport { ${proxyPort}, ${resolverPort} } accept
    ct status dnat ip daddr ${listen} udp dport ${resolverPort} accept
    goto refuse
  }
  chain output {
    type filter hook output priority filter; policy accept;
    oifname ${links} ct state new drop
    ip saddr ${proxyNetwork(installation)} jump from_proxy
  }
  chain from_proxy {
    ip daddr @protected reject
    fib daddr type != unicast reject
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
