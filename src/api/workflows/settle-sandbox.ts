import type { NodeProtocol } from '../../protocol/node.ts';
import { microsPerSecond } from '../app/clock.ts';
import type { App } from '../app/context.ts';
import { finishPause, returnToRunning } from '../store/sandbox-pause.ts';
import { cancelResume, finishResume } from '../store/sandbox-resume.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { deleteSandbox } from '../store/sandbox-state.ts';

/** The states that are left when a change of a sandbox that keeps it has come to an end, one way or the other. */
export const unsettledStates = ['pausing', 'resuming', 'snapshotting'] as const;

/**
 * Makes the store say of a sandbox in transition what its node says: the undo of every such change, and what a crash has
 * left to do. It may be repeated, and changes nothing of a sandbox that has moved on by itself.
 */
export async function settleSandbox(app: App, sandbox: SandboxRecord): Promise<SandboxRecord | null> {
  const settled = await settle(app, sandbox, app.nodes.get(sandbox.nodeId));
  if (settled) app.directory.apply(settled);
  return settled;
}

async function settle(app: App, sandbox: SandboxRecord, node: NodeProtocol): Promise<SandboxRecord | null> {
  const { db } = app.store;
  const { sandboxId, executionId, nextExecutionId } = sandbox;
  // In this order: what is paused after it was not among the running ones is among the paused ones.
  const running = new Set((await node.list()).map(listed => listed.executionId));
  const paused = (await node.listPaused()).find(listed => listed.executionId === executionId);
  if (nextExecutionId !== null) {
    const next = { sandboxId, executionId, nextExecutionId };
    if (running.has(nextExecutionId)) return finishResume(db, next, runFrom(app, sandbox.timeoutSeconds));
    if (paused) return cancelResume(db, next);
  } else {
    if (paused) return finishPause(db, sandbox, paused.kept, app.clock());
    if (running.has(executionId)) return returnToRunning(db, sandbox);
  }
  // One that its node has set aside is not gone: an operator decides.
  if ((await node.listSetAside()).some(listed => listed.sandboxId === sandboxId)) return null;
  if (await deleteSandbox(db, sandbox, unsettledStates, { reason: 'lost', atUs: app.clock() })) {
    app.log.error('a sandbox is gone from its node', { sandboxId, state: sandbox.state });
    app.directory.close(sandbox);
  }
  return null;
}

/** A run that begins now. */
export function runFrom(app: App, seconds: number): { startedAtUs: number; endAtUs: number } {
  const startedAtUs = app.clock();
  return { startedAtUs, endAtUs: startedAtUs + seconds * microsPerSecond };
}
