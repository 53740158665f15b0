import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import type { Identity } from '../../identity/rules/identity.ts';
import { sandboxesWithRules } from '../store/read.ts';
import { applyNetwork, type ApplyDeps } from '../workflows/network-steps.ts';

/** How often is looked whether sandboxes are to get new tokens. */
export const renewalIntervalMs = 10_000;
const appliesAtOnce = 8;

/**
 * Gives running sandboxes the next identity tokens, in time before theirs end. Each round does it once for each
 * renewal, and again after one in which a sandbox failed.
 */
export function tokenRenewal(deps: ApplyDeps & { identity: Identity }): () => Promise<void> {
  // A start gives every sandbox its policy anew.
  let renewed = deps.identity.renewal();
  return async () => {
    const present = deps.identity.renewal();
    if (present === renewed) return;
    const concerned = await sandboxesWithRules(deps.db, ['running', 'snapshotting'], 'tokens');
    await forEachParallel(concerned, appliesAtOnce, sandbox => applyNetwork(deps, sandbox));
    renewed = present;
  };
}
