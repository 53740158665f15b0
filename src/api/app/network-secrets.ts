import { seal, sealKey, unseal } from '../../base/seal.ts';
import type { SandboxNetworkConfig } from '../../protocol/api/network.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { App } from './context.ts';

/** Before a sealed value: no header and no password of a client begins with it, so that rows from before stay readable. */
const mark = '\u0001';

/** The configuration as it is stored: header values and the proxy's password are sealed, as secrets are. */
export function sealNetwork(app: Pick<App, 'seed'>, teamId: string, network: SandboxNetworkConfig): SandboxNetworkConfig {
  const key = keyOf(app);
  return withValues(network, value => mark + seal(key, value, teamId));
}

/** The configuration as it was given. */
export function openNetwork(app: Pick<App, 'seed'>, { teamId, network }: Pick<SandboxRecord, 'teamId' | 'network'>): SandboxNetworkConfig | null {
  if (network === null || !(network.rules || network.egressProxy)) return network;
  const key = keyOf(app);
  return withValues(network, value => (value.startsWith(mark) ? unseal(key, value.slice(mark.length), teamId) : value));
}

function withValues(network: SandboxNetworkConfig, change: (value: string) => string): SandboxNetworkConfig {
  const { rules, egressProxy } = network;
  const changed = (headers: Record<string, string>) => Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, change(value)]));
  return {
    ...network,
    ...(rules && {
      rules: Object.fromEntries(
        Object.entries(rules).map(([domain, list]) => [
          domain,
          list.map(rule => (rule.transform?.headers ? { ...rule, transform: { ...rule.transform, headers: changed(rule.transform.headers) } } : rule)),
        ]),
      ),
    }),
    ...(egressProxy && { egressProxy: { ...egressProxy, ...(egressProxy.password !== undefined && { password: change(egressProxy.password) }) } }),
  };
}

function keyOf(app: Pick<App, 'seed'>): Uint8Array {
  return sealKey(app.seed, 'network settings of sandboxes');
}
