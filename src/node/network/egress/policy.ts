import type { CompiledPolicy, Verdict } from '../../../protocol/network/egress-policy.ts';
import type { Protocol } from '../../native/conntrack.ts';

/** Which traffic of a sandbox goes through the proxy, and why. */
type Detours = {
  /** Connections to ports 80 and 443, which are decided by the name that they ask for. */
  byName: boolean;
  /** Requests to some domains leave with changed headers. */
  headers: boolean;
  /** Every TCP connection goes through the user's SOCKS5 server, and nothing goes past it. */
  socks: boolean;
};

/** The part of a policy that packets do not show, and that the proxy decides. */
export function detoursOf(policy: CompiledPolicy): Detours {
  return {
    byName: policy.domains.length > 0,
    headers: Object.keys(policy.source.headerRules ?? {}).length > 0,
    socks: policy.source.egressProxy !== undefined,
  };
}

/** Whether anything in the policy needs the proxy. */
export function needsProxy(policy: CompiledPolicy): boolean {
  const { byName, headers, socks } = detoursOf(policy);
  return byName || headers || socks;
}

/** Whether connections of a sandbox may be opened for inspection: it must then trust the installation's authority. */
export function inspects(policy: CompiledPolicy): boolean {
  const { byName, headers } = detoursOf(policy);
  return byName || headers;
}

/**
 * Whether a packet may leave without the proxy, and by which rule. The packet rules make the same decision; this one
 * tells which connections a changed policy ends, and names the rule for the log.
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
