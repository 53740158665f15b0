import { parseAddress, protectedRange } from '../../../protocol/network/network.ts';
import { chainsOf, type PolicyChains } from '../rules/policy-chains.ts';
import type { CompiledPolicy } from '../../../protocol/network/egress-policy.ts';
import { needsProxy } from './policy.ts';
import type { ProxySettings } from './proxies/messages.ts';

/** The part of a policy that goes through the proxy, and the packet rules for it. */
export type Detours = {
  /**
   * Whether anything goes through the proxy; `wanted`: without the proxy nothing is let out either, but programs that
   * look up names learn that late.
   */
  usesProxy(policy: CompiledPolicy): 'needed' | 'wanted' | 'not';
  chains(policy: CompiledPolicy): PolicyChains;
};

/** The detours of an installation. If only the host reaches a resolver, every question takes a detour. */
export function detoursOf({ platform }: ProxySettings, nameservers: string[]): Detours {
  // The host asks a resolver that only the host reaches.
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
