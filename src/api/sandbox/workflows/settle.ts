import type { ExecutionRef, NodeProtocol, PausedSandbox } from '../../../protocol/node.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { isForgotten } from '../../placement/node-status.ts';
import { finishPause, returnToRunning } from '../store/pause.ts';
import { cancelResume, finishResume } from '../store/resume.ts';
import { findExecution } from '../store/read.ts';
import { deleteLost } from '../store/state.ts';
import type { SandboxRecord } from '../record.ts';
import { applyNetwork, tellNetwork, type ApplyDeps } from './network-steps.ts';
import type { SandboxDirectory } from '../directory/directory.ts';
import type { Clock } from '../../../base/clock.ts';

/** Dependencies of settling a sandbox in transition. */
export type SettleDeps = ApplyDeps & { clock: Clock; directory: SandboxDirectory };

/** The states that a sandbox leaves when a change that keeps it has finished, one way or the other. */
export const unsettledStates = ['pausing', 'resuming', 'snapshotting'] as const;

/**
 * Makes the store agree with the node about a sandbox in transition: this is the undo of every such change, and what
 * remains to do after a crash. It may be repeated, and leaves a sandbox alone that has changed by itself.
 */
export async function settleSandbox(deps: SettleDeps, sandbox: SandboxRecord): Promise<SandboxRecord | null> {
  const settled = (await isForgotten(deps, sandbox.nodeId))
    ? await settleForgotten(deps, sandbox)
    : await settle(deps, sandbox, deps.nodes.get(sandbox.nodeId));
  if (settled) deps.directory.apply(settled);
  if (settled?.state === 'running' && !keepsRules(sandbox)) await applyNetwork(deps, settled);
  return settled;
}

async function settle(deps: SettleDeps, sandbox: SandboxRecord, node: NodeProtocol): Promise<SandboxRecord | null> {
  const { clock, db } = deps;
  const { sandboxId, executionId, nextExecutionId } = sandbox;
  const next = nextExecutionId !== null && { sandboxId, executionId, nextExecutionId };
  if (next) {
    const begun = await findBegun(node, { sandboxId, executionId: next.nextExecutionId });
    if (begun === 'running') await tellNetwork(deps, node, sandbox, next.nextExecutionId);
    const resumed = begun && (await finishResume(db, next, runFrom(clock, sandbox.timeoutSeconds)));
    if (resumed) return begun === 'running' ? resumed : finishPause(db, resumed, begun, clock());
    // It was taken back before it began. Its earlier state is in the store, and goes on from there as another
    // execution.
    const late = { sandboxId, executionId: next.nextExecutionId };
    if (begun && sandbox.durability === 'cluster' && !(await findExecution(db, late))) await node.kill(late);
  }
  // In this order: a sandbox that is paused after the first list was read is in the second one.
  const running = new Set((await node.list()).map(listed => listed.executionId));
  const paused = (await node.listPaused()).find(listed => listed.executionId === executionId);
  if (next) {
    // What is in the store is there, whatever its machine has. A sandbox on a machine that stood still counts as paused
    // before the machine has heard of that.
    if (paused || running.has(executionId) || sandbox.durability === 'cluster') return cancelResume(db, next);
  } else {
    if (paused) return finishPause(db, sandbox, paused, clock());
    if (running.has(executionId)) return runOn(deps, node, sandbox);
  }
  // A sandbox that its node has set aside is not gone: an operator decides.
  if ((await node.listSetAside()).some(listed => listed.sandboxId === sandboxId)) return null;
  return lose(deps, sandbox);
}

/** Settles a sandbox whose machine was taken out: only what is in the store is left of it. */
async function settleForgotten(deps: SettleDeps, sandbox: SandboxRecord): Promise<SandboxRecord | null> {
  const { nextExecutionId, durability } = sandbox;
  if (durability === 'cluster' && nextExecutionId !== null)
    return cancelResume(deps.db, { ...sandbox, nextExecutionId });
  return lose(deps, sandbox);
}

/** Forgets a sandbox that is gone, if nobody has gone on with it since it was read. */
export async function lose({ clock, db, directory, log }: SettleDeps, sandbox: SandboxRecord): Promise<null> {
  if (await deleteLost(db, sandbox, clock())) {
    log.error('a sandbox is gone from its node', { sandboxId: sandbox.sandboxId, state: sandbox.state });
    directory.close(sandbox);
  }
  return null;
}

/** A sandbox that is being snapshotted gets new rules at once. */
const keepsRules = ({ state }: SandboxRecord) => state === 'snapshotting';

/** A sandbox that runs on where it was counts as running again, under the present rules. */
export async function runOn(
  deps: ApplyDeps,
  node: NodeProtocol,
  sandbox: SandboxRecord,
): Promise<SandboxRecord | null> {
  if (!keepsRules(sandbox)) await tellNetwork(deps, node, sandbox);
  return returnToRunning(deps.db, sandbox);
}

/** A run that begins now. */
export function runFrom(clock: Clock, seconds: number): { startedAtUs: number; endAtUs: number } {
  const startedAtUs = clock();
  return { startedAtUs, endAtUs: startedAtUs + seconds * microsPerSecond };
}

/**
 * What became of an execution that a node was asked for by a process that did not hear the answer: it runs, or its
 * node, cut off from control, has paused it since. Null: it never began, and never will; or it has ended.
 */
export async function findBegun(node: NodeProtocol, target: ExecutionRef): Promise<'running' | PausedSandbox | null> {
  if (await node.withdraw(target)) return null;
  const isIt = ({ executionId }: ExecutionRef) => executionId === target.executionId;
  // In this order: a sandbox that is paused after the first list was read is in the second one.
  if ((await node.list()).some(isIt)) return 'running';
  return (await node.listPaused()).find(isIt) ?? null;
}
