import { AtollError, messageOf } from '../../../../base/error.ts';
import type { Clock } from '../../../../base/clock.ts';
import { newUuid } from '../../../../base/id.ts';
import type { NodeProtocol, PausedSandbox } from '../../../../protocol/node.ts';
import { isForgotten, isGone } from '../../../placement/node-status.ts';
import type { SandboxDirectory } from '../../directory/directory.ts';
import type { SandboxRecord } from '../../record.ts';
import type { BusyExecutions } from '../../rules/busy.ts';
import { startSettings } from '../../rules/start-settings.ts';
import { finishMove, recordNextRun } from '../../store/move.ts';
import { finishPause } from '../../store/pause.ts';
import { findExecution } from '../../store/read.ts';
import { findBegun, lose, runOn } from '../settle.ts';
import { applyNetwork, tellNetwork, type ApplyDeps } from '../network-steps.ts';

/** Dependencies of settling a move. */
export type SettleMoveDeps = ApplyDeps & {
  busy: Pick<BusyExecutions, 'replicaId'>;
  clock: Clock;
  directory: SandboxDirectory;
};

/**
 * Finishes a move that was cut short: the sandbox runs on the other machine if it has begun there, and otherwise again
 * where it was. It may be repeated; a machine that is out of reach and might have the sandbox is waited for until it is
 * given up. Errors: `unavailable` for that.
 */
export async function settleMove(deps: SettleMoveDeps, listed: SandboxRecord): Promise<void> {
  const { busy, db } = deps;
  const sandbox = await findExecution(db, listed);
  // Another process may have taken it over, and gone on with it.
  if (sandbox?.state !== 'moving' || sandbox.replicaId !== busy.replicaId) return;
  const { sandboxId, executionId, nodeId, nextNodeId, nextExecutionId } = sandbox;
  if (nextNodeId !== null && nextNodeId !== nodeId && nextExecutionId !== null && !(await isGone(db, nextNodeId))) {
    const node = deps.nodes.get(nextNodeId);
    const begun = await findBegun(node, { sandboxId, executionId: nextExecutionId });
    if (begun) {
      const moved = await finishBegun(deps, node, sandbox, nextExecutionId, begun);
      return countAs(deps, moved, sandbox);
    }
    // Removes what was brought there.
    await node.kill({ sandboxId, executionId });
  }
  return countAs(deps, await goBack(deps, sandbox));
}

/** `left`: the sandbox on the machine that it is no longer on. */
async function countAs(deps: SettleMoveDeps, settled: SandboxRecord | null, left?: SandboxRecord): Promise<void> {
  if (!settled) return;
  deps.directory.apply(settled);
  if (left) await removeLeft(deps, left);
  if (settled.state === 'running') await applyNetwork(deps, settled);
}

/**
 * Removes what stayed where the sandbox was. If that machine is out of reach, it is set aside there once the machine is
 * back.
 */
export async function removeLeft(
  { nodes, log }: Pick<SettleMoveDeps, 'nodes' | 'log'>,
  left: SandboxRecord,
): Promise<void> {
  const { sandboxId, executionId, nodeId } = left;
  try {
    await nodes.get(nodeId).kill({ sandboxId, executionId });
  } catch (error) {
    log.warn('what has stayed of a sandbox that was moved stays for now', { sandboxId, error: messageOf(error) });
  }
}

const runs = async (node: NodeProtocol, executionId: string) =>
  (await node.list()).some(listed => listed.executionId === executionId);

/** The next execution becomes the sandbox, in the state that its machine reports. */
async function finishBegun(
  deps: SettleMoveDeps,
  node: NodeProtocol,
  sandbox: SandboxRecord,
  nextExecutionId: string,
  begun: 'running' | PausedSandbox,
): Promise<SandboxRecord | null> {
  const { db, clock } = deps;
  if (begun === 'running') await tellNetwork(deps, node, sandbox, nextExecutionId);
  const moved = await finishMove(db, sandbox, nextExecutionId, clock());
  return moved && begun !== 'running' ? finishPause(db, moved, begun, clock()) : moved;
}

/**
 * Lets a sandbox that no other machine has run where it was. Null where it is gone, or somebody else has taken it by
 * now.
 */
async function goBack(deps: SettleMoveDeps, sandbox: SandboxRecord): Promise<SandboxRecord | null> {
  const { sandboxId, executionId, nodeId, nextNodeId, nextExecutionId } = sandbox;
  if (await isForgotten(deps, nodeId)) return lose(deps, sandbox);
  const node = deps.nodes.get(nodeId);
  if (nextNodeId === nodeId && nextExecutionId !== null) {
    const begun = await findBegun(node, { sandboxId, executionId: nextExecutionId });
    if (begun) return finishBegun(deps, node, sandbox, nextExecutionId, begun);
  }
  // In this order: a sandbox that is paused after the first list was read is in the second one.
  if (await runs(node, executionId)) return runOn(deps, node, sandbox);
  const paused = (await node.listPaused()).find(listed => listed.executionId === executionId);
  if (paused) return runAgain(deps, sandbox, node, paused);
  // A sandbox that its node has set aside is not gone: an operator decides.
  if ((await node.listSetAside()).some(listed => listed.sandboxId === sandboxId)) return null;
  return lose(deps, sandbox);
}

/** If its own machine can't run it again either, it stays paused: nothing of it is lost. */
async function runAgain(
  deps: SettleMoveDeps,
  sandbox: SandboxRecord,
  node: NodeProtocol,
  paused: PausedSandbox,
): Promise<SandboxRecord | null> {
  const { db, clock, log, busy } = deps;
  const { sandboxId, nodeId, durability } = sandbox;
  const nextExecutionId = newUuid();
  const next = { nextNodeId: nodeId, nextExecutionId, durability, replicaId: busy.replicaId };
  const recorded = await recordNextRun(db, sandbox, next);
  if (!recorded) return null;
  const settings = await startSettings(deps, recorded);
  try {
    await node.resume({ ...settings, nextExecutionId, memory: true });
  } catch (error) {
    if (error instanceof AtollError && error.code === 'unavailable') throw error;
    log.error('a sandbox that could not be moved could not go on where it was either, and is paused', {
      sandboxId,
      error: messageOf(error),
    });
    return finishPause(db, recorded, paused, clock(), durability ?? 'node');
  }
  return finishMove(db, recorded, nextExecutionId, clock());
}
