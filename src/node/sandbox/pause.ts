import { rmSync } from 'node:fs';
import { AtollError, messageOf } from '../../base/error.ts';
import type { ExecutionRef, PausedSandbox } from '../../protocol/node.ts';
import type { NodeContext, Paused, Running } from '../context.ts';
import { slotOf } from '../layout.ts';
import { checkpointToPause } from '../snapshot/checkpoint.ts';
import { criuKilled } from '../snapshot/criu.ts';
import type { RestoreHost } from '../snapshot/restore.ts';
import { makeDurable } from '../snapshot/sealed.ts';
import { inTurn } from './in-turn.ts';
import { sealKept, syncDisk } from './kept.ts';
import { checkpointSource, explainCheckpoint, memoryOf, requireMemory } from './memory.ts';
import { volumesOf } from './mount-volumes.ts';
import { startTicksOf, type PausedRecord } from './record.ts';
import { releaseBlank } from './remove.ts';
import { letStand } from './standing.ts';
import { runningOf } from './update-network.ts';

/** What a pause must leave of the host's disk: running sandboxes must be able to go on writing. */
const diskReserveBytes = 256 * 1024 ** 2;

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
  checkRoom(node, memory ? node.driver.memoryUsed(slotOf(node.layout.installation, running.record.slot)) : 0);
  return memory ? pauseWithMemory(node, running, requireMemory(node, running.record.driver)) : pauseWithFiles(node, running);
}

/** A disk that fills up while a sandbox is paused hurts those that run. Fails with `no_space`. */
function checkRoom(node: NodeContext, bytes: number): void {
  const mib = (amount: number) => Math.ceil(Math.max(0, amount) / 1024 ** 2);
  const freeBytes = node.space.freeBytes();
  if (freeBytes >= bytes + diskReserveBytes) return;
  throw new AtollError('no_space', `the disk has ${mib(freeBytes)} MiB left, and ${mib(bytes + diskReserveBytes)} MiB are needed to keep the sandbox`);
}

async function pauseWithFiles(node: NodeContext, running: Running): Promise<Paused> {
  const { slot: number, sandboxId } = running.record;
  const slot = slotOf(node.layout.installation, number);
  const record = pausedRecordOf(running, 'filesystem');
  await node.logs.catchUp(sandboxId);
  await node.driver.freeze(slot);
  try {
    // Before the end of anything: a host whose disk is full leaves the sandbox running.
    await syncDisk(node, slot, node.records.diskOf(sandboxId));
    await node.volumes.sync(slot);
    await node.records.write(record);
  } catch (error) {
    node.driver.thaw(slot);
    throw error;
  }
  // From here on the sandbox is paused, whatever happens.
  const paused = await notePaused(node, record);
  node.driver.killFrozen(slot);
  await leave(node, paused, running);
  return paused;
}

async function pauseWithMemory(node: NodeContext, running: Running, host: RestoreHost): Promise<Paused> {
  const { sandboxId, executionId, slot: number, pid, startTicks, image } = running.record;
  const slot = slotOf(node.layout.installation, number);
  const disk = node.records.diskOf(sandboxId);
  const directory = memoryOf(node, sandboxId);
  const record: PausedRecord = { ...pausedRecordOf(running, 'memory'), standing: { slot: number, pid, startTicks } };
  const source = await checkpointSource(node, slot, { pid, disk, layers: image.layers, ...volumesOf(running.record) });
  rmSync(directory, { recursive: true, force: true });
  let written = false;
  try {
    const end = await checkpointToPause(host, source, {
      directory,
      name: `pause-${slot.name}`,
      facts: { sandboxId, executionId },
      then: node.standMs > 0 ? 'stand-still' : 'end',
      // All that is kept is on the host's disk, and noted, before the first process ends.
      async onComplete() {
        await syncDisk(node, slot, disk);
        await node.volumes.sync(slot);
        await makeDurable(host, directory);
        written = true;
        await node.records.write(record);
      },
    });
    const paused = await notePaused(node, record);
    if (end === 'stand-still') letStand(node, paused, running);
    else await leave(node, paused, running);
    return paused;
  } catch (error) {
    // A CRIU that is killed between two steps can take a process with it. Without its first one, the files are what can be kept.
    if (error instanceof AtollError && error.detail === criuKilled && startTicksOf(pid) !== startTicks) return keepFilesOf(node, running);
    // It runs on.
    if (written) await node.records.write(running.record).catch(problem => node.log.error('a sandbox that was not paused is noted as paused', { sandboxId, error: messageOf(problem) }));
    node.driver.thaw(slot);
    rmSync(directory, { recursive: true, force: true });
    throw explainCheckpoint(error);
  }
}

/** Pauses, with its files, a sandbox whose processes have ended in the middle of a pause. */
async function keepFilesOf(node: NodeContext, running: Running): Promise<Paused> {
  const { sandboxId, slot } = running.record;
  node.log.error('the processes of a sandbox ended with the checkpoint that was killed; it is paused with its files', { sandboxId });
  const record = pausedRecordOf(running, 'filesystem');
  await syncDisk(node, slotOf(node.layout.installation, slot), node.records.diskOf(sandboxId));
  await node.records.write(record);
  const paused = await notePaused(node, record);
  await leave(node, paused, running);
  return paused;
}

async function notePaused(node: NodeContext, record: PausedRecord): Promise<Paused> {
  const { sandboxId, kept } = record;
  const paused: Paused = { record };
  node.running.delete(sandboxId);
  node.paused.set(sandboxId, paused);
  await node.logs.leave(sandboxId);
  node.logs.note(sandboxId, 'info', 'sandbox', kept === 'memory' ? 'paused with its memory' : 'paused with its files', { event: 'paused', kept });
  return paused;
}

function pausedRecordOf({ record }: Running, kept: PausedRecord['kept']): PausedRecord {
  const { sandboxId, executionId, controlToken, bootId, resources, network, image, agentDir, startedAtMs, driver = 'crun' } = record;
  return { state: 'paused', sandboxId, executionId, kept, pausedAtMs: Date.now(), controlToken, bootId, resources, network, image, agentDir, startedAtMs, driver, ...volumesOf(record) };
}

/** Frees what a paused sandbox used when it ran, and puts the last that its kernel wrote on the host's disk. */
async function leave(node: NodeContext, paused: Paused, { record, namespace, ended }: Running): Promise<void> {
  const { sandboxId } = record;
  const free = async () => {
    await releaseBlank(node, { slot: slotOf(node.layout.installation, record.slot), namespace, ended });
    await sealKept(node, sandboxId);
  };
  await inTurn(paused, free).catch(error => {
    node.log.error('what a paused sandbox used could not be freed', { sandboxId, error: messageOf(error) });
  });
}
