import { AtollError } from '../../base/error.ts';
import { forEachParallel } from '../../base/parallel.ts';
import { sandboxesOfTeam } from '../store/sandbox-read.ts';
import type { SecretRecord } from '../store/secrets.ts';
import { applyNetwork } from '../workflows/update-network.ts';
import type { App } from './context.ts';
import { secretsNamedBy } from './egress-secrets.ts';
import { openNetwork } from './network-secrets.ts';

const appliesAtOnce = 8;

/**
 * Makes a changed or deleted secret hold in the running sandboxes whose rules name it. Throws `internal` where that failed
 * for some: the next change of their network, their next resume or the next start of the platform does it.
 */
export async function applySecretChange(app: App, { teamId, name, secretId }: SecretRecord): Promise<void> {
  const sandboxes = await sandboxesOfTeam(app.store.db, teamId);
  const concerned = sandboxes.filter(sandbox => {
    const network = sandbox.state === 'running' && sandbox.network?.rules ? openNetwork(app, sandbox) : null;
    return network !== null && secretsNamedBy(network).some(named => named.toLowerCase() === name || named === secretId);
  });
  const failed: string[] = [];
  await forEachParallel(concerned, appliesAtOnce, async sandbox => {
    await applyNetwork(app, sandbox).catch(() => failed.push(sandbox.sandboxId));
  });
  if (failed.length > 0) throw new AtollError('internal', `The secret was changed, but these sandboxes may still use its former value: ${failed.join(', ')}`);
}
