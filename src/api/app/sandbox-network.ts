import type { SandboxNetworkConfig, SandboxNetworkUpdate } from '../../protocol/api/network.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { updateNetworkWorkflow } from '../workflows/update-network.ts';
import type { App } from './context.ts';
import { checkRuleSecrets } from './egress-secrets.ts';
import { checkEgress } from './network-config.ts';
import { sealNetwork } from './network-secrets.ts';
import { sandboxFor } from './sandbox-find.ts';

/**
 * Replaces what may leave a running sandbox; what may come in stays. When it answers, the new rules hold.
 * Errors: `invalid`, `forbidden`, `not_found`, `conflict`.
 */
export async function updateNetworkOf(app: App, team: TeamRecord, sandboxId: string, update: SandboxNetworkUpdate): Promise<SandboxRecord> {
  const { allow_internet_access: allowInternetAccess = null, ...egress } = update;
  const sandbox = await sandboxFor(app, team, sandboxId, 'updateNetwork');
  const tokens = Object.keys(sandbox.iam?.tokens ?? {});
  checkEgress(egress, { prefix: '', allowInternetAccess, features: app.features, tokens });
  await checkRuleSecrets(app, team, egress, '');
  const network = { ...ingressOf(sandbox.network), ...sealNetwork(app, team.teamId, egress) };
  const settings = { allowInternetAccess, network: Object.keys(network).length > 0 ? network : null };
  await updateNetworkWorkflow({ app, sandbox, settings });
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
