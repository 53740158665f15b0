import type { SandboxNetworkConfig } from '../../../protocol/api/network.ts';
import { updateNetworkWorkflow } from './network-steps.ts';
import { checkRuleSecrets } from '../rules/network/egress-policy.ts';
import { checkEgress } from '../rules/network/config.ts';
import { encryptNetwork } from '../rules/network/encrypted.ts';
import { sandboxFor } from '../rules/find.ts';
import type { SandboxRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { NetworkWork } from './network-steps.ts';
import type { Features } from '../features.ts';

/** Dependencies of checking and changing a sandbox's egress settings. */
export type NetworkDeps = NetworkWork & { features: Features };

/** A sandbox's egress settings from now on. */
type NetworkChange = { allowInternetAccess: boolean | null; egress: SandboxNetworkConfig };

/**
 * Replaces a running sandbox's egress settings; the ingress settings stay. When it answers, the new rules are in
 * effect. Errors: `invalid`, `forbidden`, `not_found`, `conflict`.
 */
export async function updateNetworkOf(
  deps: NetworkDeps,
  team: TeamRecord,
  sandboxId: string,
  { allowInternetAccess, egress }: NetworkChange,
): Promise<SandboxRecord> {
  const sandbox = await sandboxFor(deps.db, team, sandboxId, 'updateNetwork');
  const tokens = Object.keys(sandbox.iam?.['tokens'] ?? {});
  checkEgress(egress, { prefix: '', allowInternetAccess, features: deps.features, tokens });
  await checkRuleSecrets(deps, team, egress, '');
  const network = { ...ingressOf(sandbox.network), ...encryptNetwork(deps.seed, team.teamId, egress) };
  const settings = { allowInternetAccess, network: Object.keys(network).length > 0 ? network : null };
  await updateNetworkWorkflow({ deps, sandbox, settings });
  return sandbox;
}

function ingressOf(network: SandboxNetworkConfig | null): SandboxNetworkConfig {
  const { allowPublicTraffic, maskRequestHost, httpsPorts } = network ?? {};
  return {
    ...(allowPublicTraffic !== undefined && { allowPublicTraffic }),
    ...(maskRequestHost !== undefined && { maskRequestHost }),
    ...(httpsPorts !== undefined && { httpsPorts }),
  };
}
