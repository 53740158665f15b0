import { AtollError } from '../../../../base/error.ts';
import { agentPort } from '../../../../protocol/agent.ts';
import { networkBounds } from '../../../../protocol/api/network.ts';
import type { SandboxNetworkConfig } from '../../../../protocol/api/network.ts';
import {
  allTraffic,
  isDomainPattern,
  isHostName,
  parseAddress,
  parseBlock,
  protectedRange,
  splitHostPort,
} from '../../../../protocol/network/network.ts';
import type { EgressPolicy, EgressProxy } from '../../../../protocol/network/network.ts';
import { checkRules } from './header-rules.ts';
import type { SandboxRecord } from '../../record.ts';
import type { Features } from '../../features.ts';

/** The egress policy of a sandbox's configuration, in the form for nodes. */
export function egressPolicyOf({
  allowInternetAccess,
  network,
}: Pick<SandboxRecord, 'allowInternetAccess' | 'network'>): EgressPolicy {
  const rules = Object.entries(network?.rules ?? {}).map(
    ([domain, [rule]]) => [domain.toLowerCase(), rule?.transform?.headers ?? {}] as const,
  );
  return {
    internetAccess: allowInternetAccess !== false,
    ...(network?.allowOut && { allowOut: network.allowOut }),
    ...(network?.denyOut && { denyOut: network.denyOut }),
    ...(network?.egressProxy && { egressProxy: withoutTls(network.egressProxy) }),
    ...(rules.length > 0 && { headerRules: Object.fromEntries(rules) }),
  };
}

/** The connection to a proxy has no TLS: requests may only say that it is not enabled. */
function withoutTls({ tls: _, ...proxy }: NonNullable<SandboxNetworkConfig['egressProxy']>): EgressProxy {
  return proxy;
}

/** What a network configuration is checked against. */
type NetworkContext = {
  /** Prefix of the members' names in errors: `network.` or nothing. */
  prefix: 'network.' | '';
  allowInternetAccess: boolean | null;
  features: Features;
  /** The names of `iam.tokens`. */
  tokens: readonly string[];
};

/** Checks the whole configuration of a new sandbox; throws `invalid` or `forbidden` naming the member at fault. */
export function checkNetwork(network: SandboxNetworkConfig, context: NetworkContext & { secure: boolean }): void {
  checkEgress(network, context);
  checkIngress(network, context);
}

/** Checks the egress part of a configuration. Throws like `checkNetwork`. */
export function checkEgress(network: SandboxNetworkConfig, context: NetworkContext): void {
  checkDestinations(network, context);
  if (network.egressProxy) checkEgressProxy(network.egressProxy, context);
  if (network.rules) checkRules(network.rules, context);
}

function checkDestinations({ allowOut = [], denyOut = [] }: SandboxNetworkConfig, context: NetworkContext): void {
  const { prefix, features, allowInternetAccess } = context;
  for (const [index, entry] of denyOut.entries()) {
    const block = parseBlock(entry);
    const isBareUnspecified = block && !entry.includes('/') && block.octets.every(octet => octet === 0);
    if (!block || isBareUnspecified) {
      throw invalid(
        `${prefix}denyOut[${index}]`,
        `"${entry}" is not an address or CIDR block (all traffic is ${allTraffic})`,
      );
    }
  }
  const domains = allowOut.filter((entry, index) => {
    if (parseBlock(entry)) return false;
    if (isDomainPattern(entry)) return true;
    throw invalid(`${prefix}allowOut[${index}]`, `"${entry}" is not an address, CIDR block or domain name`);
  });
  if (domains.length > 0 && !denyOut.includes(allTraffic) && allowInternetAccess !== false) {
    throw invalid(
      `${prefix}allowOut`,
      `domains need ${allTraffic} in ${prefix}denyOut, else they allow nothing that is not allowed already`,
    );
  }
  if (domains.length > 0 && !features.egressDomains) throw unavailable(`${prefix}allowOut`, 'domains');
  if (allowOut.length > 0 && !features.egressAddresses)
    throw unavailable(`${prefix}allowOut`, 'exceptions for outgoing traffic');
  if (denyOut.length > 0 && !features.egressAddresses && !deniesAllAlone(denyOut)) {
    throw unavailable(`${prefix}denyOut`, `blocks other than ${allTraffic}`);
  }
}

function deniesAllAlone(denyOut: readonly string[]): boolean {
  return denyOut.includes(allTraffic) && denyOut.every(entry => entry === allTraffic || entry === '::/0');
}

function checkEgressProxy(
  proxy: NonNullable<SandboxNetworkConfig['egressProxy']>,
  { prefix, features }: NetworkContext,
): void {
  const field = `${prefix}egressProxy`;
  const { host, port } = splitHostPort(proxy.address);
  const octets = parseAddress(host);
  if (port === undefined || !(octets || isHostName(host)))
    throw invalid(`${field}.address`, 'must be host:port with a port from 1 to 65535');
  if (octets && protectedRange(octets) !== undefined) throw invalid(`${field}.address`, 'is an internal address');
  for (const member of ['username', 'password'] as const) {
    const value = proxy[member];
    if (value === undefined) continue;
    const bytes = Buffer.byteLength(value);
    if (bytes === 0 || bytes > networkBounds.proxyCredentialBytesMax) {
      throw invalid(`${field}.${member}`, `must have 1 to ${networkBounds.proxyCredentialBytesMax} bytes`);
    }
  }
  if (proxy.password !== undefined && proxy.username === undefined)
    throw invalid(`${field}.password`, `needs ${field}.username`);
  if (!features.egressProxy)
    throw new AtollError('forbidden', `${field}: egress proxies are not available in this installation`);
}

function checkIngress(network: SandboxNetworkConfig, { prefix, secure }: NetworkContext & { secure: boolean }): void {
  if (network.allowPublicTraffic === false && !secure)
    throw invalid(`${prefix}allowPublicTraffic`, 'false needs secure: true');
  if (network.maskRequestHost !== undefined) checkMask(network.maskRequestHost, prefix);
  if (network.httpsPorts?.includes(agentPort))
    throw invalid(`${prefix}httpsPorts`, `${agentPort} is the agent's port and can't be listed`);
}

/** `host` or `host:port` in ASCII; `${PORT}` stands for the requested port. */
function checkMask(mask: string, prefix: string): void {
  const [host = '', port, ...rest] = mask.replaceAll('${PORT}', '1').split(':');
  const isPort = port === undefined || (/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535);
  const isHost = isHostName(host) || parseAddress(host)?.length === 4;
  // An ASCII name may still be a spelling of another one (a broken xn-- label): only a name that stays the same is
  // accepted.
  const staysItself =
    isHost && URL.canParse(`http://${host}/`) && new URL(`http://${host}/`).hostname === host.toLowerCase();
  if (rest.length > 0 || !isPort || !staysItself) {
    throw invalid(
      `${prefix}maskRequestHost`,
      'must be a host or host:port in ASCII; ${PORT} stands for the requested port',
    );
  }
}

function invalid(field: string, why: string): AtollError {
  return new AtollError('invalid', `${field}: ${why}`);
}

function unavailable(field: string, what: string): AtollError {
  return invalid(field, `${what} are not available in this installation`);
}
