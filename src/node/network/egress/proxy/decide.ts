import type { PlatformInside } from '../proxies/messages.ts';
import type { CompiledPolicy } from '../../../../protocol/network/egress-policy.ts';
import { isSandboxHost, platformRefusal } from './platform.ts';

/** What a connection has shown of itself. */
export type Asked = {
  kind: 'tls' | 'http' | 'other';
  /**
   * The host that it names, in the form that rules are compared in. Undefined for `other`: what is not TLS or HTTP as
   * it should be, a server may read in another way than we do.
   */
  name: string | undefined;
  /** A host that it may have meant, for the log alone. */
  meant?: string | undefined;
  /** TLS only: a part of the ClientHello can't be read. */
  encrypted: boolean;
};

/** What becomes of a connection. */
export type Decision =
  /** Nothing of it passes. */
  | { kind: 'refuse'; rule: string }
  /** As it is, to the address that the client chose. */
  | { kind: 'pass' }
  /** As it is, to an address of the host that we look up. */
  | { kind: 'pass by name'; name: string }
  /**
   * Request by request, to an address of the host that we look up. `addresses`: whether the host is allowed under its
   * name, or only as far as its addresses are, or is the platform itself.
   */
  | { kind: 'relay'; name: string; addresses: 'any' | 'allowed' | 'platform' };

/** What of the installation decides on connections. */
export type DecideOptions = {
  /** Nothing passes by its name alone: requests are looked at. */
  opensAllowedNames: boolean;
  platform: PlatformInside | undefined;
};

/**
 * Decides about a connection that the packet rules have turned to us. A name never opens the address that the client
 * chose: where the name is what allows it, we connect to an address of our own finding.
 */
export function decide(
  policy: CompiledPolicy,
  destination: Uint8Array,
  asked: Asked,
  { opensAllowedNames, platform }: DecideOptions,
): Decision {
  const { name } = asked;
  if (platform && destination.join('.') === platform.insideAddress) {
    if (name === undefined || !isSandboxHost(platform, name))
      return { kind: 'refuse', rule: 'only URLs of sandboxes are reached here' };
    const rule = platformRefusal(policy, name);
    return rule === undefined ? { kind: 'relay', name, addresses: 'platform' } : { kind: 'refuse', rule };
  }
  const byAddress = policy.byAddress(destination);
  const byName = name === undefined ? undefined : policy.byName(name);
  if (name !== undefined && policy.headersFor(name)) {
    return { kind: 'relay', name, addresses: byName?.allowed ? 'any' : 'allowed' };
  }
  if (byAddress.allowed) return { kind: 'pass' };
  if (name === undefined || !byName?.allowed) return { kind: 'refuse', rule: byAddress.rule };
  // Behind the name that we see there could be another one: it must be opened to be sure.
  if (asked.kind === 'http' || asked.encrypted || opensAllowedNames) return { kind: 'relay', name, addresses: 'any' };
  return { kind: 'pass by name', name };
}
