import { AtollError } from '../../base/error.ts';
import { findExecution } from '../store/sandbox-read.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { App } from './context.ts';

/** A client waits 60 s by default: one that is told to come again can still do it. */
const transitionWaitMs = 50_000;
const pollMs = { first: 5, max: 100 };

/** Waits until a sandbox has left the transition that it is in. Throws `conflict` when that takes too long. */
export async function awaitTransition(app: App, sandbox: SandboxRecord): Promise<void> {
  const resuming = app.resuming.get(sandbox.sandboxId);
  if (resuming) return void (await resuming.catch(() => {}));
  const deadline = performance.now() + transitionWaitMs;
  for (let waitMs = pollMs.first; ; waitMs = Math.min(waitMs * 2, pollMs.max)) {
    const now = await findExecution(app.store.db, sandbox);
    if (now?.state !== sandbox.state) return;
    if (performance.now() > deadline) throw new AtollError('conflict', `Sandbox "${sandbox.sandboxId}" has been ${sandbox.state} for too long: ask again`);
    await Bun.sleep(waitMs);
  }
}
