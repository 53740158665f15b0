import { AtollError } from '../../../../base/error.ts';
import type { NetworkVerdict } from '../../../../protocol/api/network.ts';
import { compilePolicy } from '../../../../protocol/network/egress-policy.ts';
import { normalName, parseAddress } from '../../../../protocol/network/network.ts';
import type { EgressPolicy } from '../../../../protocol/network/network.ts';

/**
 * Whether a connection to `host` would pass a policy, decided by the same code. If no domain rule names it, the address
 * decides to which the name leads at that time, and nobody knows that now: if addresses differ, it depends. Throws
 * `invalid` for a text that is neither an address nor a name.
 */
export function verdictOnHost(policy: EgressPolicy, host: string): NetworkVerdict {
  const compiled = compilePolicy(policy);
  const octets = parseAddress(host);
  if (octets) {
    const { allowed, rule } = compiled.byAddress(octets);
    // The egress proxy has no IPv6: it refuses such connections.
    const isV6 = allowed && octets.length === 16;
    if (isV6 && policy.egressProxy) return { verdict: 'denied', rule: 'egressProxy, which is reached by IPv4 alone' };
    if (isV6 && Object.keys(policy.headerRules ?? {}).length > 0)
      return { verdict: 'depends', rule: 'the port: rules refuse 80 and 443 by IPv6, which headers do not go by' };
    return { verdict: allowed ? 'passes' : 'denied', rule };
  }
  const name = normalName(host);
  if (name === undefined)
    throw new AtollError('invalid', `host: "${host}" is neither an address nor the name of a host`);
  const byName = compiled.byName(name);
  if (byName) return { verdict: 'passes', rule: byName.rule };
  const { allow, deny, closed, fallback } = compiled;
  // An exception to the general rule may match just its address.
  const exceptions = closed ? allow : deny;
  if (exceptions.length > 0 && !(closed && allow.length === 0))
    return { verdict: 'depends', rule: 'the address that the name leads to' };
  return { verdict: closed ? 'denied' : 'passes', rule: fallback };
}
