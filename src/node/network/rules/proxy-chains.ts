import { proxyListenAddress, proxyNetwork, slotsMax } from '../../layout.ts';
import { proxyOf } from '../egress/proxies/proxies.ts';
import { elements } from './elements.ts';

/** Port of the first egress proxy, at the address that all share; the others have the next ones. */
export const proxyPort = 3128;
/** Port of the first egress proxy's resolver; those of the others follow. */
export const resolverPort = 5353;

/** New connections that one sandbox may open through its egress proxy: each costs the process some time. */
const proxyConnections = { perSecond: 500, burst: 2000 } as const;
/** Packets of questions to name servers that one sandbox may send through its egress proxy. */
const proxyQuestions = { perSecond: 500, burst: 1000 } as const;

/** The chain that redirects only questions to name servers, whichever of them a policy allows. */
export const namesChain = 'names_only';

/** The rule that redirects questions to name servers to the forwarder, except for those that match `unless`. */
export const asksForNames = (unless = ''): string =>
  `ip daddr @resolvers ${unless}meta l4proto { tcp, udp } th dport 53 goto to_resolver`;

/** Chains that redirect connections of a link, and its questions to name servers, to the egress proxy of its slot. */
export function detourChains(
  installation: number,
  proxies: number,
  slots: { number: number; interfaceName: string }[],
): string {
  const listen = proxyListenAddress(installation);
  const byProxy = (chain: string) =>
    elements(slots.map(slot => `"${slot.interfaceName}" : goto ${chain}_${proxyOf(slot.number, proxies)}`));
  const chains = Array.from(
    { length: proxies },
    (_, number) => `  chain to_proxy_${number} {
    meta l4proto tcp dnat ip to ${listen}:${proxyPort + number}
  }
  chain to_resolver_${number} {
    meta l4proto { tcp, udp } dnat ip to ${listen}:${resolverPort + number}
  }
`,
  );
  return `${chains.join('')}  map proxy_by_link {
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
  chain ${namesChain} {
    ${asksForNames()}
  }
`;
}

/**
 * What reaches the host itself: from sandboxes, only what was redirected to an egress proxy; at the proxies, nothing
 * else.
 */
export function inputChains(installation: number, proxies: number, links: string): string {
  const listen = proxyListenAddress(installation);
  const proxyPorts = `${proxyPort}-${proxyPort + proxies - 1}`;
  const resolverPorts = `${resolverPort}-${resolverPort + proxies - 1}`;
  return `  set connections_to_proxy {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  set questions_to_proxy {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname ${links} jump to_host
    ip daddr { ${proxyNetwork(installation)}, ${listen} } iifname != "lo" ct state new drop
  }
  chain to_host {
    ct status dnat ip daddr ${listen} tcp dport { ${proxyPorts}, ${resolverPorts} } goto proxy_connection
    ct status dnat ip daddr ${listen} udp dport ${resolverPorts} goto proxy_question
    goto refuse
  }
  chain proxy_connection {
    ct state != new accept
    update @connections_to_proxy { \
      iifname limit rate over ${proxyConnections.perSecond}/second burst ${proxyConnections.burst} packets } drop
    jump new_flow
    accept
  }
  chain proxy_question {
    update @questions_to_proxy { \
      iifname limit rate over ${proxyQuestions.perSecond}/second burst ${proxyQuestions.burst} packets } drop
    ct state new jump new_flow
    accept
  }
`;
}
