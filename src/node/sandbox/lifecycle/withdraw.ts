import type { ExecutionRef } from '../../../protocol/node.ts';
import type { Withdrawn } from '../records/withdrawn.ts';
import type { Sandboxes } from '../state/sandboxes.ts';

/** Makes sure that an execution no longer begins here; false if it already has. Waits for what is under way. */
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
