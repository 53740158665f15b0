import { createSemaphore } from '../../../base/concurrency/semaphore.ts';
import { AtollError, messageOf } from '../../../base/error.ts';
import { type Emptying, nodesToEmpty } from '../../placement/node-status.ts';
import type { SandboxFacts } from '../../sandbox/record.ts';
import { findExecution, sandboxesOn } from '../../sandbox/store/read.ts';
import { type MoveDeps, moveSandbox } from '../../sandbox/workflows/move/move.ts';
import { pauseRunning } from '../../sandbox/workflows/pause/pause.ts';
import { reasonAgainst } from '../rules/drain.ts';

/** How often this runs, milliseconds. */
export const drainsIntervalMs = 1_000;
/** A pause keeps a core busy. */
const atOnce = 4;
/** How long a sandbox that could not be paused or moved runs on before the next attempt. */
const retryMs = 15_000;

const done = { pausing: 'paused', moving: 'moved' } as const;

/**
 * Pauses or moves what runs on machines that are emptied in that way. Each round begins as many as it can and waits for
 * none. `settled` waits for those under way.
 */
export function drains(deps: MoveDeps): { round(): Promise<void>; settled(): Promise<void> } {
  const semaphore = createSemaphore(atOnce);
  // Keyed by the ID, which a sandbox keeps: one whose move failed goes on as another execution.
  const underWay = new Map<string, Promise<void>>();
  const failedAtMs = new Map<string, number>();

  async function take(sandbox: SandboxFacts, wanted: Emptying): Promise<void> {
    const { sandboxId, nodeId } = sandbox;
    const how = wanted === 'evicting' ? await evictionOf(sandbox) : wanted;
    if ((await reasonAgainst(deps, sandbox, how === 'moving' ? 'move' : 'pause')) !== null)
      return void failedAtMs.set(sandboxId, performance.now());
    try {
      if (how === 'moving') {
        const whole = await findExecution(deps.db, sandbox);
        return void (whole && (await moveSandbox(deps, whole)));
      }
      // A sandbox in the store can go on elsewhere.
      const { durablePauses } = deps;
      const durable = durablePauses?.isUsable && sandbox.volumeMounts.length === 0 ? durablePauses : null;
      await pauseRunning(deps, sandbox, { memory: true, durable });
    } catch (error) {
      // Another process was faster, or somebody has ended it.
      if (error instanceof AtollError && error.code === 'conflict') return;
      failedAtMs.set(sandboxId, performance.now());
      deps.log.warn(`a sandbox of a machine that is being drained could not be ${done[how]} and runs on`, {
        sandboxId,
        nodeId,
        error: messageOf(error),
      });
    }
  }

  /** Nobody is asked before the machine is gone: what can't be moved now is paused. */
  const evictionOf = async (sandbox: SandboxFacts): Promise<'pausing' | 'moving'> =>
    (await reasonAgainst(deps, sandbox, 'move')) === null ? 'moving' : 'pausing';

  return {
    async round() {
      for (const [sandboxId, atMs] of failedAtMs) if (performance.now() - atMs > retryMs) failedAtMs.delete(sandboxId);
      const emptied = await nodesToEmpty(deps.db);
      if (emptied.size === 0) return;
      for (const [nodeId, how] of emptied)
        for (const sandbox of await sandboxesOn(deps.db, nodeId, ['running'])) {
          const { sandboxId } = sandbox;
          if (underWay.has(sandboxId) || failedAtMs.has(sandboxId)) continue;
          const work = semaphore.run(() => take(sandbox, how)).finally(() => underWay.delete(sandboxId));
          underWay.set(sandboxId, work);
        }
    },
    async settled() {
      await Promise.all(underWay.values());
    },
  };
}
