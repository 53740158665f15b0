import { AtollError } from '../../base/error.ts';
import { networkBounds } from '../../protocol/api/network.ts';
import type { SandboxNetworkConfig } from '../../protocol/api/network.ts';
import { agentPort } from '../../protocol/agent.ts';
import type { Features } from './context.ts';
import { isDomainPattern, isHostName, parseBlock } from './network-address.ts';

/** Stands for every IPv4 address; in `denyOut` it means that nothing leaves. */
export const allTraffic = '0.0.0.0/0';

/**
 * Whether a sandbox has no way out at all, as far as a node without rules can enforce it: internet access is off or
 * everything is denied. Exceptions (`allowOut`) never get this far without the feature.
 */
export function deniesInternet(config: { allowInternetAccess: boolean | null; network: SandboxNetworkConfig | null }): boolean {
  return config.allowInternetAccess === false || (config.network?.denyOut ?? []).includes(allTraffic);
}

/** Checks the whole configuration; throws `invalid` or `forbidden` naming the member at fault. */
export function checkNetwork(
  network: SandboxNetworkConfig,
  options: { allowInternetAccess: boolean | null; secure: boolean; features: Features },
): void {
  const { features } = options;
  checkEgress(network, options);
  if (network.egressProxy) checkEgressProxy(network.egressProxy, features);
  if (network.rules) checkRules(network.rules, features);
  if (network.allowPublicTraffic === false && !options.secure) {
    throw invalid('network.allowPublicTraffic', 'false needs secure: true');
  }
  if (network.maskRequestHost !== undefined) checkMask(network.maskRequestHost);
  if (network.httpsPorts?.includes(agentPort)) {
    throw invalid('network.httpsPorts', `${agentPort} is the agent's port and can't be listed`);
  }
}

function checkEgress(
  network: SandboxNetworkConfig,
  { allowInternetAccess, features }: { allowInternetAccess: boolean | null; features: Features },
): void {
  const { allowOut = [], denyOut = [] } = network;
  for (const [index, entry] of denyOut.entries()) {
    const block = parseBlock(entry);
    const bareUnspecified = block && !entry.includes('/') && /^[0:.]+$/.test(entry);
    if (!block || bareUnspecified) {
      throw invalid(`network.denyOut[${index}]`, `"${entry}" is not an address or CIDR block (all traffic is ${allTraffic})`);
    }
  }
  const domains = allowOut.filter((entry, index) => {
    if (parseBlock(entry)) return false;
    if (isDomainPattern(entry)) return true;
    throw invalid(`network.allowOut[${index}]`, `"${entry}" is not an address, CIDR block or domain name`);
  });
  if (domains.length > 0 && !denyOut.includes(allTraffic) && allowInternetAccess !== false) {
    throw invalid('network.allowOut', `domains need ${allTraffic} in network.denyOut, else they allow nothing that is not allowed already`);
  }
  if (features.egressRules) return;
  if (allowOut.length > 0) throw unavailable('network.allowOut', 'exceptions for outgoing traffic');
  if (denyOut.some(entry => entry !== allTraffic && entry !== '::/0') || (denyOut.length > 0 && !denyOut.includes(allTraffic))) {
    throw unavailable('network.denyOut', `blocks other than ${allTraffic}`);
  }
}

function checkEgressProxy(proxy: NonNullable<SandboxNetworkConfig['egressProxy']>, features: Features): void {
  const { host, port } = splitHostPort(proxy.address);
  if (host === '' || port === null || !(isHostName(host) || parseBlock(host))) {
    throw invalid('network.egressProxy.address', 'must be host:port with a port from 1 to 65535');
  }
  for (const member of ['username', 'password'] as const) {
    const value = proxy[member];
    if (value === undefined) continue;
    const bytes = Buffer.byteLength(value);
    if (bytes === 0 || bytes > networkBounds.proxyCredentialBytesMax) {
      throw invalid(`network.egressProxy.${member}`, `must have 1 to ${networkBounds.proxyCredentialBytesMax} bytes`);
    }
  }
  if (proxy.password !== undefined && proxy.username === undefined) {
    throw invalid('network.egressProxy.password', 'needs network.egressProxy.username');
  }
  if (!features.egressProxy) {
    throw new AtollError('forbidden', 'network.egressProxy: egress proxies are not available in this installation');
  }
}

/** A host with its port, IPv6 in brackets. The port is null when missing or out of range. */
function splitHostPort(address: string): { host: string; port: number | null } {
  const match = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  return { host: match?.[1] ?? match?.[2] ?? '', port: port >= 1 && port <= 65_535 ? port : null };
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** RFC 9110 field values: visible characters, space and tab inside. */
const headerValue = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

function checkRules(rules: NonNullable<SandboxNetworkConfig['rules']>, features: Features): void {
  const domains = Object.entries(rules);
  if (domains.length > networkBounds.ruleDomainsMax) {
    throw invalid('network.rules', `has ${domains.length} domains, the most is ${networkBounds.ruleDomainsMax}`);
  }
  for (const [domain, list] of domains) {
    const field = `network.rules["${domain}"]`;
    if (domain.length > networkBounds.ruleDomainCharactersMax || domain === '*' || !isDomainPattern(domain)) {
      throw invalid(field, `is not a domain name of at most ${networkBounds.ruleDomainCharactersMax} characters`);
    }
    for (const rule of list) checkRuleHeaders(`${field}[0].transform.headers`, Object.entries(rule.transform?.headers ?? {}));
  }
  if (domains.length > 0 && !features.headerRules) throw unavailable('network.rules', 'header rules');
}

function checkRuleHeaders(field: string, headers: Array<[string, string]>): void {
  const { ruleHeadersMax, headerNameCharactersMax, headerValueBytesMax } = networkBounds;
  if (headers.length > ruleHeadersMax) throw invalid(field, `has ${headers.length} headers, the most is ${ruleHeadersMax}`);
  for (const [name, value] of headers) {
    if (name.length > headerNameCharactersMax || !headerName.test(name)) {
      throw invalid(field, `"${name}" is not a header name of 1 to ${headerNameCharactersMax} characters`);
    }
    if (Buffer.byteLength(value) > headerValueBytesMax || !headerValue.test(value)) {
      throw invalid(`${field}["${name}"]`, `is not a header value of at most ${headerValueBytesMax} bytes`);
    }
  }
}

/** `host` or `host:port` in ASCII; `${PORT}` stands for the requested port. */
function checkMask(mask: string): void {
  const concrete = mask.replaceAll('${PORT}', '1');
  const [host = '', port, ...rest] = concrete.split(':');
  const portIsFine = port === undefined || (/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535);
  const hostIsFine = isHostName(host) || parseBlock(host)?.version === 4;
  // An ASCII name may still be a spelling of another one (a broken xn-- label): only a name that stays itself is taken.
  const staysItself = hostIsFine && URL.canParse(`http://${host}/`) && new URL(`http://${host}/`).hostname === host.toLowerCase();
  if (rest.length > 0 || !portIsFine || !staysItself) {
    throw invalid('network.maskRequestHost', 'must be a host or host:port in ASCII; ${PORT} stands for the requested port');
  }
}

function invalid(field: string, why: string): AtollError {
  return new AtollError('invalid', `${field}: ${why}`);
}

function unavailable(field: string, what: string): AtollError {
  return new AtollError('invalid', `${field}: ${what} are not available in this installation`);
}
