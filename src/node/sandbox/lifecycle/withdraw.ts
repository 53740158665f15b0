import type { ExecutionRef } from '../../../protocol/node.ts';
import type { Withdrawn } from '../records/withdrawn.ts';
import type { Sandboxes } from '../state/sandboxes.ts';

/** Sees to it that an execution does not begin here any more; false where it has. What is under way is waited for. */
export async function withdrawExecution(
  { sandboxes, withdrawn }: { sandboxes: Sandboxes; withdrawn: Withdrawn },
  { sandboxId, executionId }: ExecutionRef,
): Promise<boolean> {
  return sandboxes.inTurn(sandboxId, async () => {
    const state = sandboxes.get(sandboxId);
    if (state && 'record' in state && state.record?.executionId === executionId) return false;
    withdrawn.add(executionId);
    return true;
  });
}
