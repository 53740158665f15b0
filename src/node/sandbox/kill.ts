import type { ExecutionRef } from '../../protocol/node.ts';
import type { NodeContext, Paused } from '../context.ts';
import { inTurn } from './in-turn.ts';
import { releaseBlank, remove } from './remove.ts';
import { takeStanding } from './standing.ts';

/** Ends a sandbox, running or paused, and settles when nothing of it is left. One that is not here is gone already. */
export async function killSandbox(node: NodeContext, target: ExecutionRef): Promise<void> {
  // A kill that overtakes its create or resume must not be lost.
  await node.creating.get(target.executionId)?.catch(() => {});
  const running = node.running.get(target.sandboxId);
  if (running?.record.executionId === target.executionId) await remove(node, running);
  // A pause that was under way may have come to its end first.
  const paused = node.paused.get(target.sandboxId);
  if (paused?.record.executionId === target.executionId) await discard(node, paused);
}

/** Removes a paused sandbox. One that runs again by the time it is its turn stays: that is another execution. */
async function discard(node: NodeContext, paused: Paused): Promise<void> {
  const { sandboxId } = paused.record;
  await inTurn(paused, async () => {
    if (node.paused.get(sandboxId) !== paused) return;
    node.records.forget(sandboxId);
    const standing = takeStanding(node, paused);
    if (standing) {
      node.driver.killFrozen(standing.slot);
      await releaseBlank(node, standing);
    }
    node.paused.delete(sandboxId);
    node.records.remove(sandboxId);
  });
}
