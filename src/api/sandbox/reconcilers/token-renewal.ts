import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import type { Identity } from '../../identity/rules/identity.ts';
import { sandboxesWithRules } from '../store/read.ts';
import { applyNetwork, type ApplyDeps } from '../workflows/network-steps.ts';

/** How often it checks whether sandboxes need new tokens. */
export const renewalIntervalMs = 10_000;
const appliesAtOnce = 8;

/**
 * Gives running sandboxes their next identity tokens before the present ones expire, once for each renewal. Sandboxes
 * for which that failed, perhaps because their machine is away, get them in a later round.
 */
export function tokenRenewal(deps: ApplyDeps & { identity: Identity }): () => Promise<void> {
  // A start gives every sandbox its policy anyway.
  let renewed = deps.identity.renewal();
  let under = { renewal: renewed, told: new Set<string>() };
  return async () => {
    const present = deps.identity.renewal();
    if (present === renewed) return;
    if (under.renewal !== present) under = { renewal: present, told: new Set() };
    const { told } = under;
    const concerned = await sandboxesWithRules(deps.db, ['running', 'snapshotting'], 'tokens');
    const left = concerned.filter(({ executionId }) => !told.has(executionId));
    await forEachParallel(left, appliesAtOnce, async sandbox => {
      await applyNetwork(deps, sandbox);
      told.add(sandbox.executionId);
    });
    renewed = present;
  };
}
