import { sandboxStates } from '../../protocol/state.ts';
import type { ExecutionRef, NodeProtocol, PausedSandbox, SandboxExit } from '../../protocol/node.ts';
import type { App } from '../app/context.ts';
import { finishPause } from '../store/sandbox-pause.ts';
import { sandboxesIn } from '../store/sandbox-read.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { KillReason } from '../store/sandbox-events.ts';
import { deleteSandbox } from '../store/sandbox-state.ts';
import { applyNetwork } from '../workflows/update-network.ts';
import { forEachParallel } from '../../base/parallel.ts';

export const adoptionIntervalMs = 30_000;
const endsAtOnce = 8;
const appliesAtOnce = 8;

/**
 * Brings store and nodes together: a sandbox that no node has any more is forgotten, one that the store does not know
 * (or knows as another execution) is ended, and the rest is adopted into the directory.
 *
 * In the `firstRound` of a process, what may leave each sandbox is told to its node again: an update of it may have been cut short.
 *
 * The order of reading matters, because creates, pauses and resumes go on meanwhile: a row that says `running` or `paused`
 * before the node is asked must be in the node's answer unless it has changed since, and a sandbox in the node's answer had
 * its row before, so the rows read after must have it.
 */
export async function reconcileNodes(app: App, firstRound = false): Promise<void> {
  for (const { nodeId, protocol } of app.nodes.list()) {
    const before = (await sandboxesIn(app.store.db, settledStates)).filter(sandbox => sandbox.nodeId === nodeId);
    const running = await protocol.list();
    const paused = await protocol.listPaused();
    const after = (await sandboxesIn(app.store.db, sandboxStates)).filter(sandbox => sandbox.nodeId === nodeId);

    const present = new Set([...running, ...paused].map(sandbox => sandbox.executionId));
    const unchanged = new Set(after.map(keyOf));
    for (const lost of before) if (!present.has(lost.executionId) && unchanged.has(keyOf(lost))) await forgetLost(app, lost);
    for (const sandbox of after) {
      if (sandbox.state !== 'starting' && present.has(sandbox.executionId)) app.directory.adopt(sandbox);
    }
    await notePaused(app, after, paused);
    const runningExecutions = new Set(running.map(sandbox => sandbox.executionId));
    const adopted = after.filter(sandbox => sandbox.state === 'running' && runningExecutions.has(sandbox.executionId));
    if (firstRound) await forEachParallel(adopted, appliesAtOnce, sandbox => applyNetwork(app, sandbox));
    const known = new Set(after.flatMap(sandbox => [sandbox.executionId, sandbox.nextExecutionId]));
    await endUnknown(app, protocol, [...running, ...paused].filter(sandbox => !known.has(sandbox.executionId)));
  }
}

/** The states whose sandbox must be on its node, and no workflow works on it. */
const settledStates = ['running', 'paused'] as const;
const keyOf = ({ executionId, state }: SandboxRecord) => `${executionId} ${state}`;

async function forgetLost(app: App, lost: SandboxRecord): Promise<void> {
  app.log.error('a sandbox is gone from its node', { sandboxId: lost.sandboxId, state: lost.state });
  if (await deleteSandbox(app.store.db, lost, [lost.state], { reason: 'lost', atUs: app.clock() })) app.directory.close(lost);
}

/** Takes note of pauses that nobody was told of: of a row that says `running`, the node knows better. */
async function notePaused(app: App, rows: SandboxRecord[], paused: PausedSandbox[]): Promise<void> {
  const keptOf = new Map(paused.map(sandbox => [sandbox.executionId, sandbox.kept]));
  for (const row of rows) {
    const kept = keptOf.get(row.executionId);
    if (row.state !== 'running' || kept === undefined || app.busy.has(row.executionId)) continue;
    const noted = await finishPause(app.store.db, row, kept, app.clock());
    if (noted) app.directory.apply(noted);
  }
}

async function endUnknown(app: App, node: NodeProtocol, unknown: ExecutionRef[]): Promise<void> {
  await forEachParallel(unknown, endsAtOnce, async ({ sandboxId, executionId }) => {
    app.log.warn('a sandbox that the store does not know is ended', { sandboxId });
    await node.kill({ sandboxId, executionId });
  });
}

/** Takes note that a sandbox ended by itself. A kill that is under way goes on: it removes the row when it is done. */
export async function noteExit(app: App, exit: SandboxExit): Promise<void> {
  app.log.info('a sandbox ended by itself', { sandboxId: exit.sandboxId, reason: exit.reason });
  await forgetSandbox(app, exit, exit.reason === 'out_of_memory' ? 'out_of_memory' : 'exited');
}

async function forgetSandbox(app: App, target: { sandboxId: string; executionId: string }, reason: KillReason): Promise<void> {
  app.directory.close(target);
  await deleteSandbox(app.store.db, target, ['starting', 'running', 'snapshotting', 'pausing'], { reason, atUs: app.clock() });
}
