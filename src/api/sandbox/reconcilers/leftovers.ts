import { isForgotten } from '../../placement/node-status.ts';
import { sandboxesLeftIn, takeOverSandbox } from '../store/read.ts';
import { moveSandbox } from '../store/state.ts';
import { killSandboxWorkflow } from '../workflows/kill-steps.ts';
import { type SettleMoveDeps, settleMove } from '../workflows/move/settle.ts';
import { settleSandbox, unsettledStates } from '../workflows/settle.ts';
import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import type { SandboxFacts } from '../record.ts';
import type { SandboxWork } from '../workflows/run.ts';

/** Dependencies of finishing leftovers. */
type LeftoversDeps = SandboxWork & SettleMoveDeps;

/** How often this runs, milliseconds. */
export const leftoversIntervalMs = 1_000;
const endsAtOnce = 8;

/**
 * Finishes what a crash or a failure left half done: a sandbox that was starting is taken back (nobody was told of it);
 * one that was being killed is killed; for one that was being paused, resumed or snapshotted, its node says what it is;
 * and one that was being moved runs on one machine or the other. Work of another process is left to it as long as it is
 * alive, and sandboxes of a machine that is away wait until it is back, or taken out.
 */
export async function reconcileLeftovers(deps: LeftoversDeps): Promise<void> {
  const replica = { ownId: deps.busy.replicaId, nowUs: deps.clock() };
  const left = await sandboxesLeftIn(deps.db, ['starting', 'killing', 'moving', ...unsettledStates], replica);
  // Each attempt writes the row, which notifies every process: so there is none while the machine can't be asked.
  const away = new Set(deps.nodes.away?.().map(({ nodeId }) => nodeId));
  const isAway = ({ nodeId, nextNodeId }: SandboxFacts) => away.has(nodeId) && away.has(nextNodeId ?? nodeId);
  const idle = left.filter(sandbox => !deps.busy.has(sandbox.executionId) && !isAway(sandbox));
  await forEachParallel(idle, endsAtOnce, sandbox => finish(deps, sandbox));
}

/**
 * A listed sandbox may have changed since: the workflow that left it in this state may have ended, and the next one
 * begun.
 */
async function finish(deps: LeftoversDeps, listed: SandboxFacts): Promise<void> {
  const { replicaId } = deps.busy;
  const sandbox = await takeOverSandbox(deps.db, listed, replicaId);
  if (!sandbox || deps.busy.has(sandbox.executionId)) return;
  if (sandbox.state === 'moving') return deps.busy.while(sandbox.executionId, () => settleMove(deps, sandbox));
  if (sandbox.state !== 'starting' && sandbox.state !== 'killing') return void (await settleSandbox(deps, sandbox));
  // Its creator may merely stand still.
  if (sandbox.state === 'starting' && !(await isForgotten(deps, sandbox.nodeId)))
    await deps.nodes.get(sandbox.nodeId).withdraw(sandbox);
  const marked =
    sandbox.state === 'killing' ? sandbox : await moveSandbox(deps.db, sandbox, ['starting'], 'killing', replicaId);
  if (marked) await killSandboxWorkflow(deps, marked);
}
