import { protectedNetworks } from '../../../protocol/network/network.ts';
import { slotsOf } from '../../layout.ts';
import type { Guards } from '../forwarding.ts';
import { elements } from './elements.ts';
import { addressChains, forwardChains, policyMaps } from './forward-chains.ts';
import type { HostFeatures } from './host-features.ts';
import { linkTable } from './link-table.ts';
import { outputChains, type ProxyNeeds } from './output-chains.ts';
import type { PolicyChains } from './policy-chains.ts';
import { detourChains, inputChains } from './proxy-chains.ts';
import { flowChains, refusalChain } from './refusal-chains.ts';
import { tableOf } from './table-name.ts';

/** What the packet rules of an installation depend on. */
export type HostTableOptions = {
  installation: number;
  /** Addresses at which sandboxes look names up. */
  resolvers: string[];
  /** What the egress proxies reach for themselves. */
  proxyNeeds: ProxyNeeds;
  /** How many egress proxies there are; they share the slots. */
  proxies: number;
  /** Connections of one sandbox that the host tracks at a time. */
  flowsMax: number;
  /** Whether sandboxes have IPv6. */
  ipv6: boolean;
  /** What the host's kernel can do. */
  features: HostFeatures;
  /** The links that exist now. */
  linksNow: string[];
  /** Interfaces that forward only for sandboxes. */
  guards: Guards;
  /** What each running sandbox may do. */
  policies: { interfaceName: string; chains: PolicyChains }[];
};

/**
 * The packet rules of one installation: one table, replaced as a whole; and a table that looks at each link first.
 * Sets are declared before the chains that use them.
 */
export function hostTable(options: HostTableOptions): string {
  const { installation, resolvers, proxyNeeds, proxies, flowsMax, ipv6, features, linksNow, guards, policies } =
    options;
  const links = `"at${installation}-*"`;
  const slots = slotsOf(installation);
  const table = tableOf(installation);
  const refusals = refusalChain(
    installation,
    slots.map(slot => slot.interfaceName),
  );
  return `
table inet ${table}
delete table inet ${table}
table inet ${table} {
  set protected {
    type ipv4_addr
    flags interval
    ${elements(protectedNetworks)}
  }
  set resolvers {
    type ipv4_addr
    ${elements(resolvers)}
  }
  chain open {
    tcp flags syn tcp option maxseg size set rt mtu
    accept
  }
  chain let_in {
    accept
  }
${refusals}${flowChains(installation, flowsMax, { ipv6, features })}${detourChains(installation, proxies, slots)}\
${policyMaps(policies)}
${addressChains(installation, links, slots, ipv6)}${forwardChains(links, ipv6, guards)}
${inputChains(installation, proxies, links)}
${outputChains(installation, links, proxyNeeds, features)}}
${linkTable(installation, linksNow, ipv6)}`;
}
