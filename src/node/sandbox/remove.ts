import { messageOf } from '../../base/error.ts';
import type { EndReason, SandboxExit } from '../../protocol/node.ts';
import type { NodeContext, Running } from '../context.ts';
import { slotOf } from '../layout.ts';
import type { Blank } from './blank.ts';
import { emptySlot, releaseSlot } from './release.ts';

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
    noteEnd(node, sandboxId, outOfMemory ? 'out_of_memory' : 'init_exited');
    node.exits.note({ sandboxId, executionId, reason: outOfMemory ? 'out_of_memory' : 'init_exited' });
  });
}

const endings: Record<EndReason | SandboxExit['reason'], string> = {
  asked: 'killed',
  timed_out: 'ended: its time was over',
  out_of_memory: 'ended: its memory was used up',
  init_exited: 'ended by itself: its first process ended',
};

/** Takes note in its log of how a sandbox ended. */
export function noteEnd(node: NodeContext, sandboxId: string, reason: EndReason | SandboxExit['reason']): void {
  node.logs.note(sandboxId, reason === 'out_of_memory' || reason === 'init_exited' ? 'error' : 'info', 'sandbox', endings[reason], { event: 'ended', reason });
}

/** Removes a running sandbox. Answers `paused` where a pause that was under way came first: then nothing was removed. */
export function remove(node: NodeContext, running: Running): Promise<'removed' | 'paused'> {
  running.removal ??= (async () => {
    await running.changing; // it writes the record
    const { record, namespace, ended } = running;
    if (node.running.get(record.sandboxId) !== running) return 'paused';
    const slot = slotOf(node.layout.installation, record.slot);
    await node.logs.catchUp(record.sandboxId);
    // It holds the network that is about to go.
    await node.logs.leave(record.sandboxId);
    await removeSandbox(node, { sandboxId: record.sandboxId, blank: { slot, namespace, ended } });
    node.running.delete(record.sandboxId);
    return 'removed';
  })();
  return running.removal;
}

/**
 * Ends a sandbox, as far as it got. When this resolves, none of its processes is left, nothing leads to it, and it has no
 * record; what it held of the host, its disk included, is taken away right after. The record goes first: whatever a crash
 * leaves behind from then on belongs to nobody, and the next start removes it.
 */
export async function removeSandbox(node: NodeContext, sandbox: { sandboxId: string; blank: Processes }): Promise<void> {
  const { sandboxId, blank } = sandbox;
  node.records.forget(sandboxId);
  await endBlank(node, blank);
  node.releases.begin(blank.slot.name, async () => {
    await emptySlot(node, blank.slot);
    await node.records.remove(sandboxId);
    node.slots.give(blank.slot);
  });
}

type Processes = Pick<Blank, 'slot' | 'namespace' | 'ended'>;

/** Ends the processes of a slot and frees it. */
export async function releaseBlank(node: NodeContext, blank: Processes): Promise<void> {
  await endBlank(node, blank);
  await releaseSlot(node, blank.slot);
}

/** Ends the processes of a slot and its way out. */
async function endBlank(node: NodeContext, { slot, namespace, ended }: Processes): Promise<void> {
  node.driver.hasten(slot);
  await node.helper.call('kill', slot.name).catch(() => {}); // it has ended already
  await ended;
  await node.driver.endProcesses(slot);
  node.egress.note(slot);
  await node.egress.remove(slot);
  namespace.close();
  node.volumes.release(slot);
}
