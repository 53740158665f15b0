/** How long the host keeps track of a TCP connection of a sandbox that is over; it has minutes for its own. Seconds. */
const keptSeconds = { afterEnd: 10, afterReset: 2 } as const;
/** The same where the kernel has one time for all: what it begins with (nf_conntrack_tcp_timeout_time_wait). */
const keptSecondsByKernel = 120;

/**
 * How long the host keeps track of what a proxy asks a name server: longer than an answer may take. A proxy looks the
 * name up that a connection shows, and half a minute of that would be several times a sandbox's part of the table.
 */
const askedSeconds = 5;

/**
 * New TCP connections of one sandbox in a second, and at once. The kernel's count of connections leaves out those that
 * are closed, which are in its table all the same: at this rate there are no more of them than of open ones, beside
 * those that are over and wait for the kernel's next round through its table (a minute at the longest).
 */
export function newConnections(flowsMax: number, forgetsClosed: boolean): { perSecond: number; burst: number } {
  const seconds = forgetsClosed ? keptSeconds.afterEnd : keptSecondsByKernel;
  return { perSecond: Math.max(Math.floor(flowsMax / seconds), 1), burst: flowsMax };
}

/** Objects that say how long closed connections are kept, by family, and questions to name servers. */
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
    // The host may ask by IPv6 where sandboxes have none.
    `${asked('asked', 'ip')}${asked('asked_v6', 'ip6')}`
  );
}

/** The chain that has a new connection forgotten soon when it is closed. */
export function forgetSoon(ipv6: boolean): string {
  return `  chain forget_soon {
    meta nfproto ipv4 meta l4proto tcp ct timeout set "closed"
${ipv6 ? '    meta nfproto ipv6 meta l4proto tcp ct timeout set "closed_v6"\n' : ''}  }
`;
}

/** The rules that have questions to these name servers forgotten soon; none where the kernel can't. */
export function forgetAsked({ v4, v6 }: { v4: string; v6: string }, forgetsClosed: boolean): string {
  const one = (ip: string, servers: string, timeout: string) =>
    `    meta l4proto udp ${ip} daddr . th dport ${servers} ct timeout set "${timeout}"\n`;
  return forgetsClosed ? `${one('ip', v4, 'asked')}${one('ip6', v6, 'asked_v6')}` : '';
}
