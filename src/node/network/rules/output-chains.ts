import { isIPv6 } from 'node:net';
import { userIdOf } from '../../../base/process/part-users.ts';
import { globalUnicast, tunnels } from '../../../protocol/network/network.ts';
import { innerAddress, innerAddressV6, proxyNetwork } from '../../layout.ts';
import { forgetAsked } from './closed-flows.ts';
import { elements } from './elements.ts';
import type { HostFeatures } from './host-features.ts';

/** What the egress proxies need to reach for themselves, and not for a sandbox. */
export type ProxyNeeds = {
  nameServers: { address: string; port: number }[];
  /** The port of the platform's edge on this machine, if sandboxes may reach it through the proxies. */
  edgePort: number | undefined;
};

/** Everything except answers on connections that others have begun. */
const fromEdge = `  chain from_edge {
    meta l4proto != tcp reject
    tcp flags & (syn | ack) == syn reject with tcp reset
  }
`;

/** Addresses of registries that the operator lets builders reach: kept as long as a job may run. */
const builderHosts = { max: 4096, seconds: 2 * 3600 } as const;

/**
 * What the host itself sends. To sandboxes it sends only answers, and no errors about packets (e.g. that a time to
 * live is over), which would reveal the host's addresses. To the address inside, which the default route would lead
 * out, it sends nothing.
 *
 * The egress proxies connect from addresses of their own, one for each slot, which are kept away from the host and
 * from everything protected, whatever a proxy does. From other addresses their user reaches name servers and the edge,
 * and answers sandboxes. The same holds for builders: whatever one does, it reaches only public addresses, and
 * `builder_hosts`, which the operator allows. The edge, which strangers may take over, answers those who connect to
 * it, and begins no connection: the node makes the connections into sandboxes.
 */
export function outputChains(
  installation: number,
  links: string,
  { nameServers, edgePort }: ProxyNeeds,
  { forgetsClosed }: HostFeatures,
): string {
  const [v6, v4] = [true, false].map(wanted =>
    elements(
      nameServers
        .filter(({ address }) => isIPv6(address) === wanted)
        .map(({ address, port }) => `${address} . ${port}`),
    ),
  );
  const user = (part: 'edge' | 'builder' | 'egress') => userIdOf(part, installation);
  return `  set name_servers {
    type ipv4_addr . inet_service
    ${v4}
  }
  set name_servers_v6 {
    type ipv6_addr . inet_service
    ${v6}
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
  chain output {
    type filter hook output priority filter; policy accept;
    oifname ${links} meta l4proto { icmp, icmpv6 } drop
    ip daddr ${innerAddress} drop
    ip6 daddr ${innerAddressV6} drop
    oifname ${links} ct state new drop
    ip saddr ${proxyNetwork(installation)} jump from_proxy
    meta skuid vmap { ${user('edge')} : jump from_edge, ${user('builder')} : jump from_builder }
    meta skuid ${user('egress')} ip saddr != ${proxyNetwork(installation)} jump from_egress
    meta skuid ${user('egress')} meta nfproto ipv6 jump from_egress
  }
  chain from_proxy {
    ip daddr @protected reject
    fib daddr type != unicast reject
    ct state new jump forget_soon
  }
${fromEdge}${fromEgress(edgePort, forgetsClosed)}  chain from_builder {
    meta l4proto != tcp drop
    ct state established accept
    ip daddr . tcp dport @builder_hosts accept
    ip6 daddr . tcp dport @builder_hosts_v6 accept
    ip daddr @protected reject with tcp reset
    meta nfproto ipv6 ip6 daddr != ${globalUnicast} reject with tcp reset
    ip6 daddr { ${tunnels.join(', ')} } reject with tcp reset
    fib daddr type != unicast reject with tcp reset
  }
`;
}

/** What the proxies reach for themselves. */
function fromEgress(edgePort: number | undefined, forgetsClosed: boolean): string {
  const toEdge = edgePort === undefined ? '' : `    fib daddr type local tcp dport ${edgePort} accept\n`;
  const asked = forgetAsked({ v4: '@name_servers', v6: '@name_servers_v6' }, forgetsClosed);
  return `  chain from_egress {
    ct state established accept
${asked}    meta l4proto { tcp, udp } ip daddr . th dport @name_servers accept
    meta l4proto { tcp, udp } ip6 daddr . th dport @name_servers_v6 accept
${toEdge}    meta l4proto tcp reject with tcp reset
    reject
  }
`;
}
