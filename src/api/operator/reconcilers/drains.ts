import { createSemaphore } from '../../../base/concurrency/semaphore.ts';
import { messageOf } from '../../../base/error.ts';
import type { DurablePauses } from '../../blob/rules/pauses.ts';
import { nodesToEmpty } from '../../placement/node-status.ts';
import type { SandboxRecord } from '../../sandbox/record.ts';
import { sandboxesIn } from '../../sandbox/store/read.ts';
import { pauseRunning } from '../../sandbox/workflows/pause.ts';
import type { SandboxWork } from '../../sandbox/workflows/run.ts';
import { reasonAgainstPause } from '../rules/drain.ts';

/** How often this runs, milliseconds. */
export const drainsIntervalMs = 1_000;
/** A pause keeps a core busy. */
const pausesAtOnce = 4;
/** How long a sandbox that could not be paused goes on before that is tried again. */
const retryMs = 15_000;

/**
 * Pauses what runs on machines that are being emptied so. Each round begins those that can be paused and waits for
 * none. `settled` waits for those under way.
 */
export function drains(deps: SandboxWork & { durablePauses: DurablePauses | null }): {
  round(): Promise<void>;
  settled(): Promise<void>;
} {
  const semaphore = createSemaphore(pausesAtOnce);
  const underWay = new Map<string, Promise<void>>();
  const failedAtMs = new Map<string, number>();

  async function pause(sandbox: SandboxRecord): Promise<void> {
    if ((await reasonAgainstPause(deps.nodes, sandbox)) !== null) return;
    try {
      // What is in the store can go on elsewhere.
      const { durablePauses } = deps;
      const durable = durablePauses?.isUsable && sandbox.volumeMounts.length === 0 ? durablePauses : null;
      await pauseRunning(deps, sandbox, { memory: true, durable });
    } catch (error) {
      failedAtMs.set(sandbox.executionId, performance.now());
      const { sandboxId, nodeId } = sandbox;
      deps.log.warn('a sandbox of a machine that is being drained could not be paused and runs on', {
        sandboxId,
        nodeId,
        error: messageOf(error),
      });
    }
  }

  return {
    async round() {
      for (const [executionId, atMs] of failedAtMs)
        if (performance.now() - atMs > retryMs) failedAtMs.delete(executionId);
      const emptied = await nodesToEmpty(deps.db);
      if (emptied.size === 0) return;
      for (const sandbox of await sandboxesIn(deps.db, ['running'])) {
        const { executionId, nodeId } = sandbox;
        if (!emptied.has(nodeId) || underWay.has(executionId) || failedAtMs.has(executionId)) continue;
        const work = semaphore.run(() => pause(sandbox)).finally(() => underWay.delete(executionId));
        underWay.set(executionId, work);
      }
    },
    async settled() {
      await Promise.all(underWay.values());
    },
  };
}
