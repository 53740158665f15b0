import { sha256Hex } from '../../../base/crypto/secret.ts';
import { rangesOf } from './address-ranges.ts';
import type { CompiledPolicy } from '../../../protocol/network/egress-policy.ts';
import { detoursOf } from '../egress/policy.ts';
import { asksForNames, namesChain } from './proxy-chains.ts';

/** The packet rules of one policy. Sandboxes whose policies lead to the same rules share them. */
export type PolicyChains = {
  /** Identifies the rules by their content. `open` and `closed` need no rules of their own. */
  key: string;
  chains: {
    /** Decides about what the sandbox sends past the proxy; undefined: everything is refused. */
    outgoing: string | undefined;
    /** Decides about answers to it in the same way: a changed policy ends conversations in both directions. */
    incoming: string | undefined;
    /** Redirects new connections to the proxy; undefined: none are redirected. */
    redirect: string | undefined;
  };
  /** Sets and chains to be declared inside the installation's table. */
  declarations: string;
};

/** The settings of the installation that decide on the rules of a policy. */
type ChainOptions = {
  /** Names are looked up through the proxy's forwarder even if the policy does not ask for it. */
  forwardDns: boolean;
  /** Where sandboxes reach the platform itself, through the proxy. */
  platform?: { address: string; ports: number[] } | undefined;
};

/**
 * Writes a policy as packet rules. Everything without a rule ends in `refuse`; only the chains below lead to `open`.
 * `permitsDirect` in policy.ts makes the same decisions, and a test compares the two.
 */
export function chainsOf(policy: CompiledPolicy, options: ChainOptions): PolicyChains {
  const { byName, headers, socks } = detoursOf(policy);
  const allow = rangesOf(policy.allow, 4);
  const deny = policy.closed ? [] : rangesOf(policy.deny, 4);
  const allowV6 = rangesOf(policy.allow, 6);
  const denyV6 = policy.closed ? [] : rangesOf(policy.deny, 6);
  const sets = { allow: allow.length > 0, deny: deny.length > 0 };
  const reachesByName = byName || socks || (options.forwardDns && !policy.closed);
  const fallback = policy.closed ? 'refuse' : 'open';

  const outgoing = socks
    ? []
    : [
        headers && 'udp dport 443 goto refuse',
        // The proxy takes only IPv4: a client that is refused at once tries that next.
        headers && 'meta nfproto ipv6 tcp dport { 80, 443 } goto refuse',
        sets.allow && 'ip daddr @ALLOW goto open',
        allowV6.length > 0 && 'ip6 daddr @V6ALLOW goto open',
        sets.deny && 'ip daddr @DENY goto refuse',
        denyV6.length > 0 && 'ip6 daddr @V6DENY goto refuse',
        `goto ${fallback}`,
      ].filter(rule => rule !== false);
  const incoming = outgoing.map(rule =>
    rule
      .replace(/^(.*(?:udp|tcp)) dport/, '$1 sport')
      .replace(/^(ip6?) daddr/, '$1 saddr')
      .replace('goto open', 'accept')
      .replace('goto refuse', 'drop'),
  );

  // A resolver that the user allowed by its address answers itself, unless nothing may bypass the SOCKS5 server.
  const unlessAllowed = sets.allow && !socks ? 'ip daddr != @ALLOW ' : '';
  // If nothing may be asked for, the forwarder says so: otherwise programs would wait half a minute for each name.
  const dnsRule = (reachesByName || policy.closed) && asksForNames(unlessAllowed);
  const { platform } = options;
  const platformRule =
    reachesByName &&
    platform &&
    `ip daddr ${platform.address} tcp dport { ${platform.ports.join(', ')} } goto to_proxy`;
  const redirect = [dnsRule, platformRule, ...connectionRules()].filter(rule => rule !== false && rule !== undefined);

  function connectionRules(): (string | false)[] {
    if (!byName && !headers && !socks) return [];
    const rules: (string | false)[] = [
      'meta l4proto != tcp return',
      'ip daddr @protected return',
      'fib daddr type local return',
    ];
    if (!socks && !headers && sets.allow) rules.push('ip daddr @ALLOW return');
    if (byName) rules.push('tcp dport { 80, 443 } goto to_proxy');
    else if (!socks) rules.push('tcp dport != { 80, 443 } return');
    if (!socks && !headers) return rules;
    return [
      ...rules,
      sets.allow && 'ip daddr @ALLOW goto to_proxy',
      sets.deny && 'ip daddr @DENY return',
      !policy.closed && 'goto to_proxy',
    ];
  }

  if (redirect.length === 0 && outgoing.join() === 'goto open')
    return { key: 'open', chains: { outgoing: 'open', incoming: 'let_in', redirect: undefined }, declarations: '' };
  if (redirect.join() === asksForNames() && outgoing.join() === 'goto refuse')
    return {
      key: 'closed',
      chains: { outgoing: undefined, incoming: undefined, redirect: namesChain },
      declarations: '',
    };
  return namedChains({ outgoing, incoming, redirect, sets: { allow, deny, allow_v6: allowV6, deny_v6: denyV6 } });
}

/** Puts the rules of a policy into chains and sets that are named by their content. */
function namedChains({
  outgoing,
  incoming,
  redirect,
  sets,
}: {
  outgoing: string[];
  incoming: string[];
  redirect: string[];
  /** Ranges of addresses, by the beginning of the set's name. */
  sets: Record<'allow' | 'deny' | 'allow_v6' | 'deny_v6', string[]>;
}): PolicyChains {
  const key = sha256Hex(JSON.stringify([outgoing, redirect, sets])).slice(0, 16);
  const nameOf = (_: string, v6: string | undefined, kind: string) =>
    `@${kind.toLowerCase()}${v6 === undefined ? '' : '_v6'}_${key}`;
  const named = (rules: string[]) => rules.map(rule => `    ${rule.replace(/@(V6)?(ALLOW|DENY)/, nameOf)}`).join('\n');
  return {
    key,
    chains: {
      outgoing: outgoing.length > 0 ? `out_${key}` : undefined,
      incoming: outgoing.length > 0 ? `in_${key}` : undefined,
      redirect: redirect.length > 0 ? `turn_${key}` : undefined,
    },
    declarations: [
      ...Object.entries(sets).map(([name, ranges]) => ranges.length > 0 && rangeSet(`${name}_${key}`, ranges)),
      outgoing.length > 0 && `  chain out_${key} {\n${named(outgoing)}\n  }\n`,
      incoming.length > 0 && `  chain in_${key} {\n${named(incoming)}\n  }\n`,
      redirect.length > 0 && `  chain turn_${key} {\n${named(redirect)}\n  }\n`,
    ]
      .filter(text => text !== false)
      .join(''),
  };
}

/** The names that a policy declares, for removal once no sandbox uses it: chains come before the sets that they use. */
export function declaredBy({ declarations }: PolicyChains): { chains: string[]; sets: string[] } {
  const named = (kind: string) =>
    [...declarations.matchAll(new RegExp(`^ {2}${kind} (\\w+)`, 'gm'))].map(match => match[1] ?? '');
  return { chains: named('chain'), sets: named('set') };
}

function rangeSet(name: string, ranges: string[]): string {
  const type = ranges[0]?.includes(':') ? 'ipv6_addr' : 'ipv4_addr';
  return `  set ${name} {\n    type ${type}\n    flags interval\n    elements = { ${ranges.join(', ')} }\n  }\n`;
}
