import { sha256Hex } from '../../../base/crypto/secret.ts';
import { ipv4Ranges } from './address-ranges.ts';
import type { CompiledPolicy } from '../../../protocol/network/egress-policy.ts';
import { detoursOf } from '../egress/policy.ts';

/** The packet rules of one policy. Sandboxes whose policies come to the same rules share them. */
export type PolicyChains = {
  /** Names the rules by their content. `open` and `closed` need none of their own. */
  key: string;
  chains: {
    /** Decides about what the sandbox sends past the proxy; undefined: all is refused. */
    outgoing: string | undefined;
    /** Decides about answers to it, the same way: a policy that changes ends conversations in both directions. */
    incoming: string | undefined;
    /** Turns new connections to the proxy; undefined: none are. */
    redirect: string | undefined;
  };
  /** Sets and chains to be declared inside the installation's table. */
  declarations: string;
};

/** What of the installation decides on the rules of a policy. */
type ChainOptions = {
  /** Names are looked up through the proxy's forwarder also where the policy does not ask for it. */
  forwardDns: boolean;
  /** Where sandboxes reach the platform itself, through the proxy. */
  platform?: { address: string; ports: number[] } | undefined;
};

/**
 * Writes a policy as packet rules. Everything that has no rule ends in `refuse`; the chains below are the only ways to
 * `open`.
 * `permitsDirect` in policy.ts makes the same decisions, and a test holds the two together.
 */
export function chainsOf(policy: CompiledPolicy, options: ChainOptions): PolicyChains {
  const { byName, headers, socks } = detoursOf(policy);
  const allow = ipv4Ranges(policy.allow);
  const deny = ipv4Ranges(policy.deny);
  const sets = { allow: allow.length > 0, deny: deny.length > 0 && !policy.closed };
  const dns = byName || socks || (options.forwardDns && !policy.closed);
  const fallback = policy.closed ? 'refuse' : 'open';

  const outgoing = socks
    ? []
    : [
        headers && 'udp dport 443 goto refuse',
        sets.allow && 'ip daddr @ALLOW goto open',
        sets.deny && 'ip daddr @DENY goto refuse',
        `goto ${fallback}`,
      ].filter(rule => rule !== false);
  const incoming = outgoing.map(rule =>
    rule
      .replace('udp dport', 'udp sport')
      .replace('ip daddr', 'ip saddr')
      .replace('goto open', 'accept')
      .replace('goto refuse', 'drop'),
  );

  // A resolver that the user allowed by its address answers itself, unless nothing may go past the SOCKS5 server.
  const unlessAllowed = sets.allow && !socks ? 'ip daddr != @ALLOW ' : '';
  const dnsRule = dns && `ip daddr @resolvers ${unlessAllowed}meta l4proto { tcp, udp } th dport 53 goto to_resolver`;
  const { platform } = options;
  const platformRule =
    dns && platform && `ip daddr ${platform.address} tcp dport { ${platform.ports.join(', ')} } goto to_proxy`;
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
  if (redirect.length === 0 && outgoing.join() === 'goto refuse')
    return {
      key: 'closed',
      chains: { outgoing: undefined, incoming: undefined, redirect: undefined },
      declarations: '',
    };
  return namedChains({
    outgoing,
    incoming,
    redirect,
    allow: sets.allow ? allow : undefined,
    deny: sets.deny ? deny : undefined,
  });
}

/** Puts the rules of a policy into chains and sets that are named by their content. */
function namedChains({
  outgoing,
  incoming,
  redirect,
  allow,
  deny,
}: {
  outgoing: string[];
  incoming: string[];
  redirect: string[];
  allow: string[] | undefined;
  deny: string[] | undefined;
}): PolicyChains {
  const key = sha256Hex(JSON.stringify([outgoing, redirect, allow, deny])).slice(0, 16);
  const named = (rules: string[]) =>
    rules.map(rule => `    ${rule.replace('@ALLOW', `@allow_${key}`).replace('@DENY', `@deny_${key}`)}`).join('\n');
  return {
    key,
    chains: {
      outgoing: outgoing.length > 0 ? `out_${key}` : undefined,
      incoming: outgoing.length > 0 ? `in_${key}` : undefined,
      redirect: redirect.length > 0 ? `turn_${key}` : undefined,
    },
    declarations: [
      allow && rangeSet(`allow_${key}`, allow),
      deny && rangeSet(`deny_${key}`, deny),
      outgoing.length > 0 && `  chain out_${key} {\n${named(outgoing)}\n  }\n`,
      incoming.length > 0 && `  chain in_${key} {\n${named(incoming)}\n  }\n`,
      redirect.length > 0 && `  chain turn_${key} {\n${named(redirect)}\n  }\n`,
    ]
      .filter(text => text !== false && text !== undefined)
      .join(''),
  };
}

/**
 * Names of what a policy declares, to be removed when no sandbox uses it any more: chains before the sets that they
 * use.
 */
export function declaredBy({ declarations }: PolicyChains): { chains: string[]; sets: string[] } {
  const named = (kind: string) =>
    [...declarations.matchAll(new RegExp(`^ {2}${kind} (\\w+)`, 'gm'))].map(match => match[1] ?? '');
  return { chains: named('chain'), sets: named('set') };
}

function rangeSet(name: string, ranges: string[]): string {
  return `  set ${name} {\n    type ipv4_addr\n    flags interval\n    elements = { ${ranges.join(', ')} }\n  }\n`;
}
