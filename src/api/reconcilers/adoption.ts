import { sandboxStates } from '../../protocol/state.ts';
import type { NodeProtocol, NodeSandbox, SandboxExit } from '../../protocol/node.ts';
import type { App } from '../app/context.ts';
import { sandboxesIn } from '../store/sandbox-read.ts';
import { deleteSandbox } from '../store/sandbox-state.ts';
import { applyNetwork } from '../workflows/update-network.ts';
import { forEachParallel } from '../../base/parallel.ts';

export const adoptionIntervalMs = 30_000;
const endsAtOnce = 8;
const appliesAtOnce = 8;

/** The states whose sandbox must be on its node. One that is starting may not be there yet, a paused one is not. */
const presentStates = ['running', 'snapshotting'] as const;

/**
 * Brings store and nodes together: a sandbox that no node has any more is forgotten, one that the store does not know
 * (or knows as another execution) is ended, and the rest is adopted into the directory.
 *
 * In the `firstRound` of a process, what may leave each sandbox is told to its node again: an update of it may have been cut short.
 *
 * The order of reading matters, because creates go on meanwhile: a row that says `running` before the node is asked must
 * be in the node's answer, and a sandbox in the node's answer had its row before, so the rows read after must have it.
 */
export async function reconcileNodes(app: App, firstRound = false): Promise<void> {
  for (const { nodeId, protocol } of app.nodes.list()) {
    const before = (await sandboxesIn(app.store.db, presentStates)).filter(sandbox => sandbox.nodeId === nodeId);
    const present = await protocol.list();
    const after = (await sandboxesIn(app.store.db, sandboxStates)).filter(sandbox => sandbox.nodeId === nodeId);

    const presentExecutions = new Set(present.map(sandbox => sandbox.executionId));
    for (const lost of before.filter(sandbox => !presentExecutions.has(sandbox.executionId))) {
      app.log.warn('a sandbox is gone from its node', { sandboxId: lost.sandboxId });
      await forgetSandbox(app, lost);
    }
    for (const sandbox of after) {
      if (sandbox.state !== 'starting' && presentExecutions.has(sandbox.executionId)) app.directory.adopt(sandbox);
    }
    const adopted = after.filter(sandbox => sandbox.state === 'running' && presentExecutions.has(sandbox.executionId));
    if (firstRound) await forEachParallel(adopted, appliesAtOnce, sandbox => applyNetwork(app, sandbox));
    const knownExecutions = new Set(after.map(sandbox => sandbox.executionId));
    await endUnknown(app, protocol, present.filter(sandbox => !knownExecutions.has(sandbox.executionId)));
  }
}

async function endUnknown(app: App, node: NodeProtocol, unknown: NodeSandbox[]): Promise<void> {
  await forEachParallel(unknown, endsAtOnce, async ({ sandboxId, executionId }) => {
    app.log.warn('a sandbox that the store does not know is ended', { sandboxId });
    await node.kill({ sandboxId, executionId });
  });
}

/** Takes note that a sandbox ended by itself. A kill that is under way goes on: it removes the row when it is done. */
export async function noteExit(app: App, exit: SandboxExit): Promise<void> {
  app.log.info('a sandbox ended by itself', { sandboxId: exit.sandboxId, reason: exit.reason });
  await forgetSandbox(app, exit);
}

async function forgetSandbox(app: App, target: { sandboxId: string; executionId: string }): Promise<void> {
  app.directory.close(target);
  await deleteSandbox(app.store.db, target, ['starting', 'running', 'snapshotting', 'pausing', 'resuming']);
}
