import type { EndReason, ExecutionRef } from '../../protocol/node.ts';
import type { NodeContext, Paused } from '../context.ts';
import { inTurn } from './in-turn.ts';
import { noteEnd, remove, removeSandbox } from './remove.ts';
import { takeStanding } from './standing.ts';

/**
 * Ends a sandbox, running or paused, and settles when none of its processes is left and nobody can reach it any more; what it
 * held of the host is gone soon after (see releases.ts). One that is not here is gone already.
 */
export async function killSandbox(node: NodeContext, target: ExecutionRef, reason: EndReason = 'asked'): Promise<void> {
  const { executionId } = target;
  node.killing.add(executionId);
  await kill(node, target, reason).finally(() => node.killing.delete(executionId));
}

async function kill(node: NodeContext, target: ExecutionRef, reason: EndReason): Promise<void> {
  // A kill that overtakes its create or resume must not be lost.
  await node.creating.get(target.executionId)?.catch(() => {});
  const running = node.running.get(target.sandboxId);
  if (running?.record.executionId === target.executionId && (await remove(node, running)) === 'removed') noteEnd(node, target.sandboxId, reason);
  // A pause that was under way may have come to its end first.
  const paused = node.paused.get(target.sandboxId);
  if (paused?.record.executionId === target.executionId && (await discard(node, paused))) noteEnd(node, target.sandboxId, reason);
}

/** Removes a paused sandbox. False: it runs again by the time it is its turn, and stays, as that is another execution. */
async function discard(node: NodeContext, paused: Paused): Promise<boolean> {
  const { sandboxId } = paused.record;
  return inTurn(paused, async () => {
    if (node.paused.get(sandboxId) !== paused) return false;
    const standing = takeStanding(node, paused);
    if (standing) {
      node.driver.killFrozen(standing.slot);
      await removeSandbox(node, { sandboxId, blank: standing });
    } else {
      node.records.forget(sandboxId);
      await node.records.remove(sandboxId);
    }
    node.paused.delete(sandboxId);
    return true;
  });
}
