import type { App } from '../app/context.ts';
import { findExecution, sandboxesIn } from '../store/sandbox-read.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { moveSandbox } from '../store/sandbox-state.ts';
import { killSandboxWorkflow } from '../workflows/kill-sandbox.ts';
import { settleSandbox, unsettledStates } from '../workflows/settle-sandbox.ts';
import { forEachParallel } from '../../base/parallel.ts';

export const leftoversIntervalMs = 1_000;
const endsAtOnce = 8;

/**
 * Finishes what a crash or a failure left half done: a sandbox that was starting is taken back (nobody was told of it),
 * one that was being killed is killed, and of one that was being paused, resumed or snapshotted its node says what it is.
 */
export async function reconcileLeftovers(app: App): Promise<void> {
  const left = (await sandboxesIn(app.store.db, ['starting', 'killing', ...unsettledStates])).filter(sandbox => !app.busy.has(sandbox.executionId));
  await forEachParallel(left, endsAtOnce, sandbox => finish(app, sandbox));
}

/** What was listed is read again: the workflow that left it in this state may have ended, and the next one begun, since. */
async function finish(app: App, listed: SandboxRecord): Promise<void> {
  const sandbox = await findExecution(app.store.db, listed);
  if (sandbox?.state !== listed.state || app.busy.has(sandbox.executionId)) return;
  if (sandbox.state !== 'starting' && sandbox.state !== 'killing') return void (await settleSandbox(app, sandbox));
  const marked = sandbox.state === 'killing' ? sandbox : await moveSandbox(app.store.db, sandbox, ['starting'], 'killing');
  if (marked) await killSandboxWorkflow(app, marked);
}
