import {
  allTraffic,
  contains,
  coversName,
  parseBlock,
  protectedRange,
  type Block,
  type EgressPolicy,
} from './network.ts';

/** A decision and the rule that made it, for the log. */
export type Verdict = { allowed: boolean; rule: string };

/** A policy, compiled so that it answers questions. */
export type CompiledPolicy = {
  source: EgressPolicy;
  allow: Block[];
  deny: Block[];
  /** Domain patterns of `allowOut`, in lower case. */
  domains: string[];
  /** Whatever no rule names is denied. */
  closed: boolean;
  /** The rule for whatever no rule names. */
  fallback: string;
  /** May the address (octets) be reached? Takes protected ranges into account. */
  byAddress(octets: Uint8Array): Verdict;
  /** May the host be reached by its name? Undefined: no domain rule names it. */
  byName(name: string): Verdict | undefined;
  /** Headers that are set on requests to the host; undefined where no rule covers it. */
  headersFor(name: string): Record<string, string> | undefined;
};

/** Compiles a validated policy. An entry without meaning is a bug and is not ignored. */
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
