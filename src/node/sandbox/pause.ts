import { AtollError, messageOf } from '../../base/error.ts';
import type { ExecutionRef, PausedSandbox } from '../../protocol/node.ts';
import type { NodeContext, Paused, Running } from '../context.ts';
import { slotOf } from '../layout.ts';
import { inTurn } from './in-turn.ts';
import { sealKept, syncDisk } from './kept.ts';
import type { PausedRecord } from './record.ts';
import { releaseBlank } from './remove.ts';
import { runningOf } from './update-network.ts';

/** Pauses a sandbox; the same execution is paused once, however often it is asked for. */
export async function pauseSandbox(node: NodeContext, target: ExecutionRef, { memory }: { memory: boolean }): Promise<PausedSandbox> {
  const known = pausedOf(node, target);
  if (known) return pausedSummaryOf(known);
  return inTurn(runningOf(node, target), async () => {
    const paused = pausedOf(node, target) ?? (await pause(node, runningOf(node, target), memory));
    return pausedSummaryOf(paused);
  });
}

/** The execution, where it is paused here. */
export function pausedOf(node: NodeContext, target: ExecutionRef): Paused | undefined {
  const paused = node.paused.get(target.sandboxId);
  return paused?.record.executionId === target.executionId ? paused : undefined;
}

export function pausedSummaryOf({ record }: Paused): PausedSandbox {
  const { sandboxId, executionId, kept, pausedAtMs } = record;
  return { sandboxId, executionId, kept, pausedAtMs };
}

async function pause(node: NodeContext, running: Running, memory: boolean): Promise<Paused> {
  if (memory) throw new AtollError('precondition', 'the memory of sandboxes can’t be kept on this node; pause with memory: false keeps the files');
  const { slot: number, sandboxId } = running.record;
  const slot = slotOf(node.layout.installation, number);
  const record = pausedRecordOf(running, 'filesystem');
  await node.driver.freeze(slot);
  try {
    // Before the end of anything: a host whose disk is full leaves the sandbox running.
    await syncDisk(node, slot, node.records.diskOf(sandboxId));
    await node.records.write(record);
  } catch (error) {
    node.driver.thaw(slot);
    throw error;
  }
  // From here on the sandbox is paused, whatever happens.
  const paused: Paused = { record };
  node.running.delete(sandboxId);
  node.paused.set(sandboxId, paused);
  node.driver.killFrozen(slot);
  await inTurn(paused, () => leave(node, running)).catch(error => {
    node.log.error('what a paused sandbox used could not be freed', { sandboxId, error: messageOf(error) });
  });
  return paused;
}

function pausedRecordOf({ record }: Running, kept: PausedRecord['kept']): PausedRecord {
  const { sandboxId, executionId, controlToken, bootId, resources, network, image } = record;
  return { state: 'paused', sandboxId, executionId, kept, pausedAtMs: Date.now(), controlToken, bootId, resources, network, image };
}

/** Frees what a paused sandbox used when it ran, and puts the last that its kernel wrote on the host's disk. */
async function leave(node: NodeContext, running: Running): Promise<void> {
  const { record, namespace, ended } = running;
  await releaseBlank(node, { slot: slotOf(node.layout.installation, record.slot), namespace, ended });
  await sealKept(node, record.sandboxId);
}
