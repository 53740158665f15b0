import type { App } from '../app/context.ts';
import { expireSandbox } from '../store/sandbox-state.ts';
import { sandboxesDue } from '../store/sandbox-read.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { killSandboxWorkflow } from '../workflows/kill-sandbox.ts';
import { forEachParallel } from '../../base/parallel.ts';

/**
 * How often expiry looks. Looking at the clock again each time, instead of sleeping until the next end,
 * also notices at once that the clock was set.
 */
export const expiryIntervalMs = 250;
/** Sandboxes taken up in one round. */
const dueMax = 500;
const endsAtOnce = 8;

/** Ends what has run out of time. */
export async function reconcileExpiry(app: App): Promise<void> {
  const due = await sandboxesDue(app.store.db, app.clock(), dueMax);
  const expired: SandboxRecord[] = [];
  // All are cut off first: a slow removal of one must not keep the next reachable beyond its time.
  for (const sandbox of due) {
    const marked = await expireSandbox(app.store.db, sandbox, 'killing', app.clock());
    if (!marked) continue;
    app.busy.add(marked.executionId);
    app.directory.close(marked);
    expired.push(marked);
  }
  await forEachParallel(expired, endsAtOnce, sandbox => killSandboxWorkflow(app, sandbox));
}
