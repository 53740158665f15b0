import { parseAddress, protectedRange } from '../../../protocol/network/network.ts';
import { chainsOf, type PolicyChains } from '../rules/policy-chains.ts';
import type { CompiledPolicy } from '../../../protocol/network/egress-policy.ts';
import { needsProxy } from './policy.ts';
import type { ProxySettings } from './proxies/messages.ts';

/** What of a policy goes by the proxy, and the packet rules for it. */
export type Detours = {
  /**
   * Whether anything goes by the proxy: `wanted` where nothing is let out without it either, and programs that ask for
   * names only learn that late.
   */
  usesProxy(policy: CompiledPolicy): 'needed' | 'wanted' | 'not';
  chains(policy: CompiledPolicy): PolicyChains;
};

/** The detours of an installation. A resolver that only the host reaches makes one for every question. */
export function detoursOf({ platform }: ProxySettings, nameservers: string[]): Detours {
  // A resolver that only the host reaches is asked by the host.
  const forwardDns =
    platform !== undefined ||
    nameservers.some(address => protectedRange(parseAddress(address) ?? new Uint8Array()) !== undefined);
  return {
    usesProxy(policy) {
      if (needsProxy(policy) || (forwardDns && !policy.closed)) return 'needed';
      return policy.closed ? 'wanted' : 'not';
    },
    chains: policy =>
      chainsOf(policy, {
        forwardDns,
        platform: platform && { address: platform.insideAddress, ports: [...platform.httpPorts, ...platform.tlsPorts] },
      }),
  };
}
