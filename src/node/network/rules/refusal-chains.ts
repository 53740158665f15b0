import { slotsMax } from '../../layout.ts';
import { closedTimeouts, forgetSoon, newConnections } from './closed-flows.ts';
import { elements } from './elements.ts';
import type { HostFeatures } from './host-features.ts';

/** New connections of one sandbox, for kernels that can't count the existing ones. */
const newFlows = { perSecond: 20, burst: 1000 } as const;

/** The prefix of reports about packets that are one connection too many. */
export const flowsPrefix = 'flows';

/** The group under which the kernel reports refused packets of an installation (NFLOG). */
export const refusalGroup = (installation: number): number => 0xa700 + installation;

/** Reports a few of the packets of each link. */
const reportSome = (installation: number, prefix = '') =>
  `update @refused_lately { iifname limit rate 5/second burst 20 packets } ` +
  `log ${prefix}group ${refusalGroup(installation)} snaplen 64`;

/** Counts the refused packets of each link, and reports some. TCP is refused by a reset, the rest is dropped. */
export function refusalChain(installation: number, links: string[]): string {
  return `  set refused {
    type ifname
    counter
    ${elements(links.map(link => `"${link}"`))}
  }
  set refused_lately {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  chain refuse {
    iifname @refused
    ${reportSome(installation)}
    meta l4proto tcp reject with tcp reset
    drop
  }
`;
}

/**
 * Bounds the connections that the host tracks for each link: one table serves all, including the host's own
 * connections. Kernels that can't count them get a limit on new ones, which is weaker.
 */
export function flowChains(
  installation: number,
  flowsMax: number,
  { ipv6, features: { countsFlows, forgetsClosed } }: { ipv6: boolean; features: HostFeatures },
): string {
  const over = countsFlows
    ? `ct count over ${flowsMax}`
    : `limit rate over ${newFlows.perSecond}/second burst ${newFlows.burst} packets`;
  const { perSecond, burst } = newConnections(flowsMax, forgetsClosed);
  const forgets = forgetsClosed ? `${closedTimeouts(ipv6)}${forgetSoon(ipv6)}` : '  chain forget_soon {\n  }\n';
  return `${forgets}  set flows {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  set flows_lately {
    type ifname
    size ${slotsMax}
    flags dynamic
  }
  chain new_flow {
    meta l4proto tcp update @flows_lately { iifname limit rate over ${perSecond}/second burst ${burst} packets } \
      goto too_many_flows
    add @flows { iifname ${over} } goto too_many_flows
    jump forget_soon
  }
  chain too_many_flows {
    iifname @refused
    ${reportSome(installation, `prefix "${flowsPrefix}" `)}
    drop
  }
`;
}
