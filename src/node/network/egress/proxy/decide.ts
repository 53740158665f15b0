import type { PlatformInside } from '../proxies/messages.ts';
import type { CompiledPolicy } from '../../../../protocol/network/egress-policy.ts';
import { isSandboxHost, platformRefusal } from './platform.ts';

/** What a connection has revealed about itself. */
export type Asked = {
  kind: 'tls' | 'http' | 'other';
  /**
   * The host that it names, in the form in which rules are compared. Undefined for `other`: a server may read
   * malformed TLS or HTTP differently from this code.
   */
  name: string | undefined;
  /** The host that it may have meant, for the log only. */
  meant?: string | undefined;
  /** For TLS: a part of the ClientHello can't be read. */
  encrypted: boolean;
};

/** What happens to a connection. */
export type Decision =
  /** Nothing of it passes. */
  | { kind: 'refuse'; rule: string }
  /** Passes unchanged, to the address that the client chose. */
  | { kind: 'pass' }
  /** Passes unchanged, to an address of the host that the proxy looks up. */
  | { kind: 'pass by name'; name: string }
  /**
   * Passes request by request, to an address of the host that the proxy looks up. `addresses`: whether the host is
   * allowed by its name, only if its addresses are allowed, or is the platform itself.
   */
  | { kind: 'relay'; name: string; addresses: 'any' | 'allowed' | 'platform' };

/** The settings of the installation that decide on connections. */
export type DecideOptions = {
  /** No connection passes by its name alone: its requests are inspected. */
  opensAllowedNames: boolean;
  platform: PlatformInside | undefined;
};

/**
 * Decides about a connection that the packet rules have redirected to the proxy. A name does not open the address that
 * the client chose: if the name allows the connection, it goes to an address that the proxy finds itself.
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
  // The visible name could hide another one: only opening the connection tells.
  if (asked.kind === 'http' || asked.encrypted || opensAllowedNames) return { kind: 'relay', name, addresses: 'any' };
  return { kind: 'pass by name', name };
}
