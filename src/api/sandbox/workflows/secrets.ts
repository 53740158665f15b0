import { AtollError, messageOf } from '../../../base/error.ts';
import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import type { EgressPolicy } from '../../../protocol/network/network.ts';
import type { SandboxState } from '../../../protocol/state.ts';
import { findExecution, sandboxesWithRules } from '../store/read.ts';
import { applyNetwork } from './network-steps.ts';
import { egressPolicyFor, secretsNamedBy } from '../rules/network/egress-policy.ts';
import { decryptNetwork } from '../rules/network/encrypted.ts';
import type { SandboxFacts, SandboxRecord } from '../record.ts';
import type { SecretRecord } from '../../secret/record.ts';
import type { ApplyDeps } from './network-steps.ts';

const appliesAtOnce = 8;

/** Sandboxes in other states get a policy when they run: see `holdSecrets`. */
const runsIn: readonly SandboxState[] = ['running', 'snapshotting'];

/**
 * Makes a changed or deleted secret take effect in the running sandboxes whose rules name it. Throws `internal` where
 * that failed for some: the next change of their network, their next resume or the next start of the platform does it.
 */
export async function applySecretChange(deps: ApplyDeps, { teamId, name, secretId }: SecretRecord): Promise<void> {
  const isConcerned = async (listed: SandboxFacts) => {
    const sandbox = await findExecution(deps.db, listed);
    const network = sandbox?.network?.rules ? decryptNetwork(deps.seed, sandbox) : null;
    return (
      network !== null && secretsNamedBy(network).some(named => named.toLowerCase() === name || named === secretId)
    );
  };
  const failed: string[] = [];
  await forEachParallel(await sandboxesWithRules(deps.db, runsIn, { teamId }), appliesAtOnce, async sandbox => {
    if (!(await isConcerned(sandbox))) return;
    await applyNetwork(deps, sandbox).catch(() => failed.push(sandbox.sandboxId));
  });
  if (failed.length > 0)
    throw new AtollError(
      'internal',
      `The secret was changed, but these sandboxes may still use its former value: ${failed.join(', ')}`,
    );
}

/**
 * For a sandbox that was started with the policy `sent` and now runs: makes changes of secrets during the start take
 * effect.
 */
export async function holdSecrets(deps: ApplyDeps, sandbox: SandboxRecord, sent: EgressPolicy): Promise<void> {
  if (!sent.headerRules || JSON.stringify(await egressPolicyFor(deps, sandbox)) === JSON.stringify(sent)) return;
  await applyNetwork(deps, sandbox);
}

/** The same, except that a failure does not end the sandbox: it then has the secrets with which it started. */
export async function holdCurrentSecrets(deps: ApplyDeps, sandbox: SandboxRecord, sent: EgressPolicy): Promise<void> {
  try {
    await holdSecrets(deps, sandbox, sent);
  } catch (error) {
    const { sandboxId } = sandbox;
    deps.log.error('a sandbox that runs may hold a secret as it was', { sandboxId, error: messageOf(error) });
  }
}
