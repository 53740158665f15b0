import { messageOf } from '../../base/error.ts';
import { createGate } from '../../base/gate.ts';
import { forEachParallel } from '../../base/parallel.ts';
import { memoryUnavailable } from '../app/memory-ability.ts';
import type { App } from '../app/context.ts';
import { pauseRunning } from '../app/sandbox-pause.ts';
import { microsPerSecond } from '../app/clock.ts';
import { sandboxesDue } from '../store/sandbox-read.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { expireSandbox, setSandboxEnd } from '../store/sandbox-state.ts';
import { killSandboxWorkflow } from '../workflows/kill-sandbox.ts';
import { AtollError } from '../../base/error.ts';

/**
 * How often expiry looks. Looking at the clock again each time, instead of sleeping until the next end,
 * also notices at once that the clock was set.
 */
export const expiryIntervalMs = 250;
/** Sandboxes taken up in one round. */
const dueMax = 500;
const endsAtOnce = 8;
/** A pause keeps a core busy. */
const pausesAtOnce = 4;
/** How long a sandbox that could not be paused goes on before that is tried again. */
const pauseRetrySeconds = 15;

/** Ends what has run out of time. */
export async function reconcileExpiry(app: App): Promise<void> {
  const due = await sandboxesDue(app.store.db, 'kill', app.clock(), dueMax);
  const expired: SandboxRecord[] = [];
  // All are cut off first: a slow removal of one must not keep the next reachable beyond its time.
  for (const sandbox of due) {
    const marked = await expireSandbox(app.store.db, sandbox, app.clock());
    if (!marked) continue;
    app.busy.add(marked.executionId);
    app.directory.close(marked);
    expired.push(marked);
  }
  await forEachParallel(expired, endsAtOnce, async sandbox => {
    await killSandboxWorkflow(app, sandbox, 'timed_out').finally(() => app.busy.delete(sandbox.executionId));
  });
}

/**
 * Pauses what has run out of time and is to be paused then. A pause may take minutes: each round begins those that are due and waits
 * for none, so that one that is slow holds back nobody but itself. `settled` waits for those under way.
 */
export function autoPauses(app: App): { round(): Promise<void>; settled(): Promise<void> } {
  const gate = createGate(pausesAtOnce);
  const underWay = new Map<string, Promise<void>>();
  return {
    async round() {
      for (const sandbox of await sandboxesDue(app.store.db, 'pause', app.clock(), dueMax)) {
        const { executionId, sandboxId } = sandbox;
        if (underWay.has(executionId)) continue;
        const pause = gate
          .run(() => autoPause(app, sandbox))
          .catch((error: unknown) => app.log.warn('a pause that is due will be tried again', { sandboxId, error: messageOf(error) }))
          .finally(() => underWay.delete(executionId));
        underWay.set(executionId, pause);
      }
    },
    async settled() {
      await Promise.all(underWay.values());
    },
  };
}

/**
 * A sandbox whose memory can't be kept after all is paused with its files: it must not run on, and they must not be lost.
 * One that can't be paused at all runs on until it can.
 */
async function autoPause(app: App, sandbox: SandboxRecord): Promise<void> {
  const { sandboxId } = sandbox;
  try {
    await pauseRunning(app, sandbox, sandbox.autoPauseMemory, app.clock());
  } catch (error) {
    if (sandbox.autoPauseMemory && error instanceof AtollError && error.detail === memoryUnavailable) {
      app.log.warn('a sandbox is paused with its files alone, because its memory could not be kept', { sandboxId, error: error.message });
      await pauseRunning(app, sandbox, false, app.clock()).catch(again => postpone(app, sandbox, again));
    } else {
      await postpone(app, sandbox, error);
    }
  }
}

async function postpone(app: App, sandbox: SandboxRecord, error: unknown): Promise<void> {
  const nowUs = app.clock();
  const left = await setSandboxEnd(app.store.db, sandbox, { endAtUs: nowUs + pauseRetrySeconds * microsPerSecond, onlyLater: true, nowUs });
  // Somebody has ended it meanwhile.
  if (!left) return;
  app.log.error('a sandbox whose time is over could not be paused and runs on', { sandboxId: sandbox.sandboxId, error: messageOf(error) });
}
