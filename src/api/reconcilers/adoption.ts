import { messageOf } from '../../base/error.ts';
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
 * (or knows as another execution) is set aside, and the rest is adopted into the directory. Nothing is deleted because a list lacks it:
 * the store may be the one that is wrong.
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
    await takeBackKnown(app, nodeId, protocol);
    const setAside = new Set((await protocol.listSetAside()).map(({ sandboxId }) => sandboxId));
    const running = await protocol.list();
    const paused = await protocol.listPaused();
    const after = (await sandboxesIn(app.store.db, sandboxStates)).filter(sandbox => sandbox.nodeId === nodeId);

    const present = new Set([...running, ...paused].map(sandbox => sandbox.executionId));
    const unchanged = new Set(after.map(keyOf));
    for (const lost of before) if (!present.has(lost.executionId) && !setAside.has(lost.sandboxId) && unchanged.has(keyOf(lost))) await forgetLost(app, lost);
    for (const sandbox of after) {
      if (sandbox.state !== 'starting' && present.has(sandbox.executionId)) app.directory.adopt(sandbox);
    }
    await notePaused(app, after, paused);
    const runningExecutions = new Set(running.map(sandbox => sandbox.executionId));
    const adopted = after.filter(sandbox => sandbox.state === 'running' && runningExecutions.has(sandbox.executionId));
    if (firstRound) await forEachParallel(adopted, appliesAtOnce, sandbox => applyNetwork(app, sandbox));
    const known = new Set(after.flatMap(sandbox => [sandbox.executionId, sandbox.nextExecutionId]));
    await setAsideUnknown(app, protocol, [...running, ...paused].filter(sandbox => !known.has(sandbox.executionId)));
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

async function setAsideUnknown(app: App, node: NodeProtocol, unknown: ExecutionRef[]): Promise<void> {
  await forEachParallel(unknown, endsAtOnce, async ({ sandboxId, executionId }) => {
    await node.setAside({ sandboxId, executionId }, 'the database did not know it').catch((error: unknown) => {
      app.log.error('a sandbox that the store does not know could not be set aside and runs on', { sandboxId, error: messageOf(error) });
    });
  });
}

/** What was set aside while another database was there is as it was, once the right one is back. */
async function takeBackKnown(app: App, nodeId: string, node: NodeProtocol): Promise<void> {
  const setAside = await node.listSetAside();
  if (setAside.length === 0) return;
  const rows = await sandboxesIn(app.store.db, settledStates);
  for (const { sandboxId, known } of setAside) {
    const row = rows.find(row => row.nodeId === nodeId && row.sandboxId === sandboxId && row.executionId === known?.executionId);
    // One that only could not be taken over is none that can be given back: its node has to start again.
    if (row && known) await node.takeBack({ sandboxId, executionId: known.executionId }).catch((error: unknown) => app.log.warn('a sandbox stays set aside', { sandboxId, error: messageOf(error) }));
  }
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
