import { encrypt, encryptionKey, decrypt } from '../../../../base/crypto/encryption.ts';
import type { SandboxNetworkConfig } from '../../../../protocol/api/network.ts';
import type { SandboxRecord } from '../../record.ts';

/**
 * The configuration in its stored form: header values and the proxy's password are encrypted, like secrets; domains of
 * rules are in lower case.
 */
export function encryptNetwork(seed: Uint8Array, teamId: string, network: SandboxNetworkConfig): SandboxNetworkConfig {
  const key = keyOf(seed);
  const rules = Object.entries(network.rules ?? {}).map(([domain, list]) => [domain.toLowerCase(), list] as const);
  const written = network.rules ? { ...network, rules: Object.fromEntries(rules) } : network;
  return withValues(written, value => encrypt(key, value, teamId));
}

/** The configuration as it was given. */
export function decryptNetwork(
  seed: Uint8Array,
  { teamId, network }: Pick<SandboxRecord, 'teamId' | 'network'>,
): SandboxNetworkConfig | null {
  if (network === null || !(network.rules || network.egressProxy)) return network;
  const key = keyOf(seed);
  return withValues(network, value => decrypt(key, value, teamId));
}

function withValues(network: SandboxNetworkConfig, change: (value: string) => string): SandboxNetworkConfig {
  const { rules, egressProxy } = network;
  const changed = (headers: Record<string, string>) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, change(value)]));
  return {
    ...network,
    ...(rules && {
      rules: Object.fromEntries(
        Object.entries(rules).map(([domain, list]) => [
          domain,
          list.map(rule =>
            rule.transform?.headers
              ? { ...rule, transform: { ...rule.transform, headers: changed(rule.transform.headers) } }
              : rule,
          ),
        ]),
      ),
    }),
    ...(egressProxy && {
      egressProxy: {
        ...egressProxy,
        ...(egressProxy.password !== undefined && { password: change(egressProxy.password) }),
      },
    }),
  };
}

function keyOf(seed: Uint8Array): Uint8Array {
  return encryptionKey(seed, 'network settings of sandboxes');
}
