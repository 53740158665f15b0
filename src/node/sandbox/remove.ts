import { messageOf } from '../../base/error.ts';
import type { ExecutionRef } from '../../protocol/node.ts';
import type { NodeContext, Paused, Running } from '../context.ts';
import { slotOf } from '../layout.ts';
import type { Blank } from './blank.ts';
import { inTurn } from './in-turn.ts';
import { releaseSlot } from './release.ts';

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

/** Cleans up after a sandbox whose processes end, and tells who listens when nobody asked for its end. */
export function onEnded(node: NodeContext, running: Running): void {
  void running.ended.then(async () => {
    if (running.removal || node.running.get(running.record.sandboxId) !== running) return;
    const { sandboxId, executionId, slot } = running.record;
    const outOfMemory = node.driver.outOfMemoryKills(slotOf(node.layout.installation, slot)) > 0;
    try {
      if ((await remove(node, running)) === 'paused') return;
    } catch (error) {
      node.log.error('a sandbox that ended could not be removed', { sandboxId, error: messageOf(error) });
    }
    const exit = { sandboxId, executionId, reason: outOfMemory ? 'out_of_memory' : 'init_exited' } as const;
    for (const listener of node.exitListeners) listener(exit);
  });
}

/** Answers `paused` where a pause that was under way came first: then nothing was removed. */
function remove(node: NodeContext, running: Running): Promise<'removed' | 'paused'> {
  running.removal ??= (async () => {
    await running.changing; // it writes the record
    const { record, namespace, ended } = running;
    if (node.running.get(record.sandboxId) !== running) return 'paused';
    const slot = slotOf(node.layout.installation, record.slot);
    await removeSandbox(node, { sandboxId: record.sandboxId, executionId: record.executionId, blank: { slot, namespace, ended } });
    node.running.delete(record.sandboxId);
    return 'removed';
  })();
  return running.removal;
}

/** Removes a paused sandbox. One that runs again by the time it is its turn stays: that is another execution. */
async function discard(node: NodeContext, paused: Paused): Promise<void> {
  const { sandboxId } = paused.record;
  await inTurn(paused, async () => {
    if (node.paused.get(sandboxId) !== paused) return;
    node.records.forget(sandboxId);
    node.paused.delete(sandboxId);
    node.records.remove(sandboxId);
  });
}

/**
 * Takes away everything that belongs to a sandbox, as far as it got. The record goes first: whatever a crash leaves
 * behind from then on belongs to nobody, and the next start removes it.
 */
export async function removeSandbox(node: NodeContext, sandbox: ExecutionRef & { blank: Processes }): Promise<void> {
  const { sandboxId, blank } = sandbox;
  node.records.forget(sandboxId);
  await releaseBlank(node, blank);
  node.records.remove(sandboxId);
}

type Processes = Pick<Blank, 'slot' | 'namespace' | 'ended'>;

/** Ends the processes of a slot and frees it. */
export async function releaseBlank(node: NodeContext, { slot, namespace, ended }: Processes): Promise<void> {
  await node.helper.call('kill', slot.name).catch(() => {}); // it has ended already
  await ended;
  namespace.close();
  await node.egress.remove(slot);
  await releaseSlot(node, slot);
}
