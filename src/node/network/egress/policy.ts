import { allTraffic, contains, coversName, parseBlock, protectedRange, type Block, type EgressPolicy } from '../../../protocol/network.ts';

/** A decision and the rule that made it, for the log. */
export type Verdict = { allowed: boolean; rule: string };

export type Protocol = 'tcp' | 'udp' | 'other';

/** A policy in the form that questions are asked of. */
export type CompiledPolicy = {
  source: EgressPolicy;
  allow: Block[];
  deny: Block[];
  /** Domain patterns of `allowOut`, in lower case. */
  domains: string[];
  /** What no rule names is denied. */
  closed: boolean;
  /** The rule about what no rule names. */
  fallback: string;
  /** May the address (octets) be reached? Protected ranges included. */
  byAddress(octets: Uint8Array): Verdict;
  /** May the host be reached under its name? Undefined: no domain rule names it. */
  byName(name: string): Verdict | undefined;
  /** Headers that requests to the host leave with; undefined where no rule covers it. */
  headersFor(name: string): Record<string, string> | undefined;
};

/** Compiles a policy that was validated. Entries that mean nothing are a bug, not ignored. */
export function compilePolicy(source: EgressPolicy): CompiledPolicy {
  const allow: Block[] = [];
  const domains: string[] = [];
  for (const entry of source.allowOut ?? []) {
    const block = parseBlock(entry);
    if (block) allow.push(block);
    else domains.push(entry.toLowerCase());
  }
  const deny = (source.denyOut ?? []).map(entry => {
    const block = parseBlock(entry);
    if (!block) throw new Error(`denyOut holds ${entry}`);
    return block;
  });
  const closed = !source.internetAccess || deny.some(block => block.text === allTraffic);
  const closedBy = source.internetAccess ? `denyOut ${allTraffic}` : 'allow_internet_access false';
  const fallback = closed ? closedBy : 'default';
  return {
    source,
    allow,
    deny,
    domains,
    closed,
    fallback,
    byAddress(octets) {
      const range = protectedRange(octets);
      if (range !== undefined) return { allowed: false, rule: `protected ${range}` };
      const allowed = allow.find(block => contains(block, octets));
      if (allowed) return { allowed: true, rule: `allowOut ${allowed.text}` };
      const denied = deny.find(block => contains(block, octets));
      if (denied) return { allowed: false, rule: `denyOut ${denied.text}` };
      return { allowed: !closed, rule: fallback };
    },
    byName(name) {
      const pattern = domains.find(domain => coversName(domain, name));
      return pattern === undefined ? undefined : { allowed: true, rule: `allowOut ${pattern}` };
    },
    headersFor: headerLookup(source.headerRules ?? {}),
  };
}

/** Exact names before patterns, the longest pattern first; sets are not merged. */
function headerLookup(rules: Record<string, Record<string, string>>): CompiledPolicy['headersFor'] {
  const patterns = Object.keys(rules)
    .map(domain => ({ domain, pattern: domain.toLowerCase() }))
    .sort((a, b) => rank(b.pattern) - rank(a.pattern));
  return name => {
    const found = patterns.find(({ pattern }) => coversName(pattern, name));
    return found && rules[found.domain];
  };
}

function rank(pattern: string): number {
  return pattern.startsWith('*') ? pattern.length : 1000 + pattern.length;
}

/** Which traffic of a sandbox is taken through the proxy, and why. */
export type Detours = {
  /** Connections to ports 80 and 443, to be decided by the name they ask for. */
  byName: boolean;
  /** Requests to some domains leave with other headers. */
  headers: boolean;
  /** Every TCP connection goes through the user's SOCKS5 server, and nothing goes past it. */
  socks: boolean;
};

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
  if (headers && protocol === 'udp' && port === 443) return { allowed: false, rule: 'rules, which QUIC would go past' };
  return verdict;
}
