import type { SandboxNetworkConfig } from '../../../protocol/api/network.ts';
import type { ListedSandbox, Sandbox, SandboxDetail } from '../../../protocol/api/sandbox.ts';
import { clientId } from '../../../protocol/api/sandbox.ts';
import { assert } from '../../../base/error.ts';
import { shownState, transitionOf } from '../../../protocol/state.ts';
import { formatTime } from '../../../base/time.ts';
import { hideLiterals } from '../rules/network/placeholders.ts';
import { decryptNetwork } from '../rules/network/encrypted.ts';
import { tokensOf } from '../rules/tokens.ts';
import type { CreatedSandbox, ListedSandbox as ListedRecord, SandboxRecord } from '../record.ts';

/** A sandbox as create, connect and resume answer it. */
export function sandboxView(seed: Uint8Array, sandbox: CreatedSandbox): Sandbox {
  const { accessToken, trafficToken } = tokensOf(seed, sandbox);
  return {
    ...identityView(sandbox),
    envdAccessToken: accessToken,
    ...(trafficToken !== null && { trafficAccessToken: trafficToken }),
    domain: null,
  };
}

/** A sandbox in a list. */
export function listedSandboxView(sandbox: ListedRecord): ListedSandbox {
  const state = shownState(sandbox.state);
  assert(state !== null, `sandbox ${sandbox.sandboxId} is shown in its hidden state ${sandbox.state}`);
  const transition = transitionOf(sandbox.state);
  return {
    ...identityView(sandbox),
    nodeID: sandbox.nodeId,
    startedAt: formatTime(sandbox.startedAtUs),
    endAt: formatTime(sandbox.endAtUs),
    cpuCount: sandbox.cpuCount,
    memoryMB: sandbox.memoryMiB,
    diskSizeMB: sandbox.diskMiB,
    state,
    ...(transition !== null && { transition }),
    ...(sandbox.metadata !== null && { metadata: sandbox.metadata }),
    volumeMounts: sandbox.volumeMounts.map(({ name, path }) => ({ name, path })),
    ...(sandbox.state === 'paused' && {
      pauseMode: sandbox.kept === 'memory' ? 'full' : 'filesystem',
      ...(sandbox.agentUnresponsive && { envdUnresponsiveAtPause: true }),
      durability: sandbox.durability ?? 'node',
    }),
  };
}

/** Everything that clients may know of a sandbox; that excludes the password of its egress proxy. */
export function sandboxDetailView(seed: Uint8Array, sandbox: SandboxRecord): SandboxDetail {
  const { accessToken } = tokensOf(seed, sandbox);
  const network = decryptNetwork(seed, sandbox);
  return {
    ...listedSandboxView(sandbox),
    ...(accessToken !== null && { envdAccessToken: accessToken }),
    ...(sandbox.allowInternetAccess !== null && { allowInternetAccess: sandbox.allowInternetAccess }),
    domain: null,
    ...(network !== null && { network: withoutPassword(network) }),
    lifecycle: {
      autoResume: sandbox.autoResume,
      onTimeout: sandbox.autoPause ? 'pause' : 'kill',
      // Clients that use only what other platforms offer see no more than there.
      ...(sandbox.autoPauseDurability === 'cluster' && { durability: sandbox.autoPauseDurability }),
    },
  };
}

function identityView(
  sandbox: Pick<CreatedSandbox, 'templateId' | 'sandboxId' | 'agentVersion' | 'alias'>,
): Pick<Sandbox, 'templateID' | 'sandboxID' | 'clientID' | 'envdVersion' | 'alias'> {
  return {
    templateID: sandbox.templateId,
    sandboxID: sandbox.sandboxId,
    clientID: clientId,
    envdVersion: sandbox.agentVersion,
    ...(sandbox.alias !== null && { alias: sandbox.alias }),
  };
}

function withoutPassword(network: SandboxNetworkConfig): SandboxNetworkConfig {
  if (!network.egressProxy) return network;
  const { password: _, ...egressProxy } = network.egressProxy;
  return { ...network, egressProxy };
}

/**
 * What a person with read access may see: not the token, which allows more, and no credentials in headers that the
 * network sets.
 */
export function viewersDetailView({ envdAccessToken: _, ...detail }: SandboxDetail): SandboxDetail {
  if (!detail.network?.rules) return detail;
  const rules = mapValues(detail.network.rules, ofDomain =>
    ofDomain.map(rule => {
      const headers = rule.transform?.headers;
      return headers ? { ...rule, transform: { ...rule.transform, headers: mapValues(headers, hideLiterals) } } : rule;
    }),
  );
  return { ...detail, network: { ...detail.network, rules } };
}

const mapValues = <From, To>(map: Record<string, From>, to: (value: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(map).map(([key, value]) => [key, to(value)]));
