/** How long the host tracks a finished TCP connection of a sandbox; its own it tracks for minutes. Seconds. */
const keptSeconds = { afterEnd: 10, afterReset: 2 } as const;
/** The same if the kernel has one time for all: its default (nf_conntrack_tcp_timeout_time_wait). */
const keptSecondsByKernel = 120;

/**
 * How long the host tracks a proxy's question to a name server: longer than an answer may take. A proxy looks up the
 * name that a connection shows, and half a minute of such questions would take several times a sandbox's part of the
 * table.
 */
const askedSeconds = 5;

/**
 * New TCP connections of one sandbox, per second and at once. The kernel's count of connections leaves out closed
 * ones, which are in its table all the same: at this rate there are no more of them than of open ones, plus those that
 * are finished and wait for the kernel's next walk through its table (a minute at the longest).
 */
export function newConnections(flowsMax: number, forgetsClosed: boolean): { perSecond: number; burst: number } {
  const seconds = forgetsClosed ? keptSeconds.afterEnd : keptSecondsByKernel;
  return { perSecond: Math.max(Math.floor(flowsMax / seconds), 1), burst: flowsMax };
}

/** The objects that set how long closed connections, by family, and questions to name servers are tracked. */
export function closedTimeouts(ipv6: boolean): string {
  const one = (name: string, family: string) => `  ct timeout ${name} {
    protocol tcp
    l3proto ${family}
    policy = { time_wait : ${keptSeconds.afterEnd}, close : ${keptSeconds.afterReset} }
  }
`;
  const asked = (name: string, family: string) => `  ct timeout ${name} {
    protocol udp
    l3proto ${family}
    policy = { unreplied : ${askedSeconds}, replied : ${askedSeconds} }
  }
`;
  return (
    `${one('closed', 'ip')}${ipv6 ? one('closed_v6', 'ip6') : ''}` +
    // The host may ask by IPv6 even if sandboxes have none.
    `${asked('asked', 'ip')}${asked('asked_v6', 'ip6')}`
  );
}

/** The chain that makes new connections be forgotten soon after they are closed. */
export function forgetSoon(ipv6: boolean): string {
  return `  chain forget_soon {
    meta nfproto ipv4 meta l4proto tcp ct timeout set "closed"
${ipv6 ? '    meta nfproto ipv6 meta l4proto tcp ct timeout set "closed_v6"\n' : ''}  }
`;
}

/** The rules that make questions to these name servers be forgotten soon; none if the kernel can't. */
export function forgetAsked({ v4, v6 }: { v4: string; v6: string }, forgetsClosed: boolean): string {
  const one = (ip: string, servers: string, timeout: string) =>
    `    meta l4proto udp ${ip} daddr . th dport ${servers} ct timeout set "${timeout}"\n`;
  return forgetsClosed ? `${one('ip', v4, 'asked')}${one('ip6', v6, 'asked_v6')}` : '';
}
