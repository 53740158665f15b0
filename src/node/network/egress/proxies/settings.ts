import { isIPv4, isIPv6 } from 'node:net';
import { rootCertificates } from 'node:tls';
import { userIdOf } from '../../../../base/process/part-users.ts';
import { proxyListenAddress, type Layout } from '../../../layout.ts';
import { proxyPort, resolverPort } from '../../rules/proxy-chains.ts';
import type { ProxyNeeds } from '../../rules/output-chains.ts';
import { hostRoots, readAuthority } from '../authority.ts';
import { nameServerOf, type ProxySettings } from './messages.ts';
import { platformInside, type EgressSettings } from '../settings.ts';

/** The resolver that sandboxes may always ask if names are allowed, whatever their own resolver is. */
export const publicResolver = '8.8.8.8';

/** What the proxies of an installation are started with. Makes the installation's authority if there is none. */
export function proxySettingsOf({
  layout,
  nameservers,
  settings,
}: {
  layout: Pick<Layout, 'installation' | 'egressAuthority'>;
  nameservers: string[];
  settings: EgressSettings;
}): ProxySettings {
  const { installation } = layout;
  return {
    installation,
    listenAddress: proxyListenAddress(installation),
    port: proxyPort,
    resolverPort,
    nameServers: nameservers.map(address => (isIPv6(address) ? `[${address}]` : address)),
    resolvers: [publicResolver, ...nameservers.filter(isIPv4)],
    platform: settings.platform && platformInside(installation, settings.platform),
    opensAllowedNames: settings.opensAllowedNames ?? false,
    roots: settings.roots ?? hostRoots() ?? rootCertificates.join('\n'),
    authority: readAuthority(layout.egressAuthority),
    userId: userIdOf('egress', installation),
  };
}

/** What the proxies reach for themselves; the packet rules let them. */
export function proxyNeedsOf({ nameServers, platform }: ProxySettings): ProxyNeeds {
  return { nameServers: nameServers.map(nameServerOf), edgePort: platform?.edge.port };
}
