import type { SandboxNetworkConfig } from '../../protocol/api/network.ts';
import type { ListedSandbox, Sandbox, SandboxDetail } from '../../protocol/api/sandbox.ts';
import { clientId } from '../../protocol/api/sandbox.ts';
import { assert } from '../../base/error.ts';
import { shownState } from '../../protocol/state.ts';
import { formatTime } from '../../base/time.ts';
import type { App } from '../app/context.ts';
import { openNetwork } from '../app/network-secrets.ts';
import { tokensOf } from '../app/tokens.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';

/** A sandbox as create, connect and resume answer it. */
export function sandboxView(app: App, sandbox: SandboxRecord): Sandbox {
  const { accessToken, trafficToken } = tokensOf(app.seed, sandbox);
  return {
    ...identityView(sandbox),
    envdAccessToken: accessToken,
    ...(trafficToken !== null && { trafficAccessToken: trafficToken }),
    domain: null,
  };
}

/** A sandbox in a list. */
export function listedSandboxView(sandbox: SandboxRecord): ListedSandbox {
  const state = shownState(sandbox.state);
  assert(state !== null, `sandbox ${sandbox.sandboxId} is shown in its hidden state ${sandbox.state}`);
  return {
    ...identityView(sandbox),
    startedAt: formatTime(sandbox.startedAtUs),
    endAt: formatTime(sandbox.endAtUs),
    cpuCount: sandbox.cpuCount,
    memoryMB: sandbox.memoryMiB,
    diskSizeMB: sandbox.diskMiB,
    state,
    ...(sandbox.metadata !== null && { metadata: sandbox.metadata }),
    volumeMounts: sandbox.volumeMounts.map(({ name, path }) => ({ name, path })),
  };
}

/** Everything that clients may know of a sandbox. The password of its egress proxy they may not. */
export function sandboxDetailView(app: App, sandbox: SandboxRecord): SandboxDetail {
  const { accessToken } = tokensOf(app.seed, sandbox);
  const network = openNetwork(app, sandbox);
  return {
    ...listedSandboxView(sandbox),
    ...(accessToken !== null && { envdAccessToken: accessToken }),
    ...(sandbox.allowInternetAccess !== null && { allowInternetAccess: sandbox.allowInternetAccess }),
    domain: null,
    ...(network !== null && { network: withoutPassword(network) }),
    lifecycle: { autoResume: sandbox.autoResume, onTimeout: sandbox.autoPause ? 'pause' : 'kill' },
  };
}

function identityView(sandbox: SandboxRecord): Pick<Sandbox, 'templateID' | 'sandboxID' | 'clientID' | 'envdVersion' | 'alias'> {
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
