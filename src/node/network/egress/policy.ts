import type { CompiledPolicy, Verdict } from '../../../protocol/network/egress-policy.ts';
import type { Protocol } from '../../native/conntrack.ts';

/** Which traffic of a sandbox is taken through the proxy, and why. */
type Detours = {
  /** Connections to ports 80 and 443, to be decided by the name they ask for. */
  byName: boolean;
  /** Requests to some domains leave with other headers. */
  headers: boolean;
  /** Every TCP connection goes through the user's SOCKS5 server, and nothing goes past it. */
  socks: boolean;
};

/** What of a policy packets do not show, and the proxy decides on. */
export function detoursOf(policy: CompiledPolicy): Detours {
  return {
    byName: policy.domains.length > 0,
    headers: Object.keys(policy.source.headerRules ?? {}).length > 0,
    socks: policy.source.egressProxy !== undefined,
  };
}

/** Whether anything of the policy needs the proxy. */
export function needsProxy(policy: CompiledPolicy): boolean {
  const { byName, headers, socks } = detoursOf(policy);
  return byName || headers || socks;
}

/** Whether connections of a sandbox may be opened for inspection: it must trust the installation's authority. */
export function inspects(policy: CompiledPolicy): boolean {
  const { byName, headers } = detoursOf(policy);
  return byName || headers;
}

/**
 * Whether a packet may leave past the proxy, and by which rule: the same decision that the packet rules make,
 * for telling which connections a changed policy ends, and for naming the rule in the log.
 */
export function permitsDirect(policy: CompiledPolicy, protocol: Protocol, octets: Uint8Array, port: number): Verdict {
  const { headers, socks } = detoursOf(policy);
  const verdict = policy.byAddress(octets);
  if (!verdict.allowed) return verdict;
  if (socks) return { allowed: false, rule: protocol === 'tcp' ? 'egressProxy' : 'egressProxy, which takes TCP alone' };
  if (headers && octets.length === 16 && protocol === 'tcp' && (port === 80 || port === 443))
    return { allowed: false, rule: 'rules, whose headers go by IPv4 alone' };
  if (headers && protocol === 'udp' && port === 443) return { allowed: false, rule: 'rules, which QUIC would go past' };
  return verdict;
}
