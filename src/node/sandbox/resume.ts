import { existsSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { AtollError, messageOf } from '../../base/error.ts';
import type { Kept, ResumeSandbox } from '../../protocol/node.ts';
import { initAgent } from '../agent-call.ts';
import type { NodeContext, Paused, Running } from '../context.ts';
import { openSnapshot } from '../snapshot/restore.ts';
import { admit } from './admission.ts';
import { blankWithDisk, type Blank } from './blank.ts';
import { emptyVolatile } from './empty-volatile.ts';
import { inTurn } from './in-turn.ts';
import { repairDisk, sealKept, unsealKept, verifyKept } from './kept.ts';
import { freshEntropy, memoryOf, requireMemory, staleMemoryOf } from './memory.ts';
import { mountVolumes, volumesOf } from './mount-volumes.ts';
import { pausedOf } from './pause.ts';
import { startTicksOf, type PausedRecord, type ProcessPlace, type RunningRecord } from './record.ts';
import { onEnded, releaseBlank } from './remove.ts';
import { restoreBlank } from './restore-blank.ts';
import { slotMountPoint } from './slot-disk.ts';
import { leaveStanding, takeStanding } from './standing.ts';
import { startRooted } from './start-rooted.ts';
import { startTemplateServer } from './start-command.ts';

/** Lets a paused sandbox run again; the same next execution begins once, however often it is asked for. */
export function resumeSandbox(node: NodeContext, request: ResumeSandbox): Promise<Running> {
  const { sandboxId, nextExecutionId } = request;
  const running = node.running.get(sandboxId);
  if (running?.record.executionId === nextExecutionId && !running.removal) return Promise.resolve(running);
  const known = node.creating.get(nextExecutionId);
  if (known) return known;
  const paused = pausedOf(node, request);
  if (!paused) throw notPausedHere(sandboxId);
  const resuming = inTurn(paused, () => resume(node, paused, request)).finally(() => node.creating.delete(nextExecutionId));
  node.creating.set(nextExecutionId, resuming);
  return resuming;
}

async function resume(node: NodeContext, paused: Paused, request: ResumeSandbox): Promise<Running> {
  const { sandboxId } = request;
  if (pausedOf(node, request) !== paused) throw notPausedHere(sandboxId);
  const withMemory = request.memory && paused.record.kept === 'memory';
  const running = withMemory ? ((await letGo(node, paused, request)) ?? (await fromDisk(node, paused, request, restoreMemory))) : await fromDisk(node, paused, request, boot);
  node.paused.delete(sandboxId);
  node.running.set(sandboxId, running);
  onEnded(node, running);
  const from = running.record.resumedFrom ?? 'filesystem';
  node.logs.note(sandboxId, 'info', 'sandbox', from === 'memory' ? 'resumed with its memory' : 'resumed: booted from its files', { event: 'resumed', from });
  node.logs.follow(running);
  if (withMemory) await refreshAgent(node, running, request);
  await dropMemory(node, sandboxId);
  return running;
}

/** Where the processes still stand, they are the sandbox. Undefined where they do not. */
async function letGo(node: NodeContext, paused: Paused, request: ResumeSandbox): Promise<Running | undefined> {
  const { standing: place } = paused.record;
  if (!place || !paused.standing || !node.driver.isFrozen(paused.standing.slot)) return undefined;
  const record = runningRecordOf(paused.record, place, request, 'memory');
  await node.records.write(record);
  const standing = takeStanding(node, paused);
  if (!standing) throw notPausedHere(request.sandboxId);
  const { slot, namespace, ended } = standing;
  if (!Bun.deepEquals(paused.record.network, request.network)) await node.egress.update({ sandboxId: record.sandboxId, slot, namespace }, request.network);
  node.driver.thaw(slot);
  return { record, namespace, ended };
}

/** Starts from what is on the host's disk, if that is whole. A failed start leaves it as it was. */
async function fromDisk(node: NodeContext, paused: Paused, request: ResumeSandbox, start: typeof boot): Promise<Running> {
  const { sandboxId } = request;
  await leaveStanding(node, paused);
  await admit(node);
  await verifyKept(node, sandboxId);
  await unsealKept(node, sandboxId);
  try {
    return await start(node, paused, request);
  } catch (error) {
    await sealKept(node, sandboxId).catch(problem => node.log.error('a sandbox that could not be resumed is not sealed', { sandboxId, error: messageOf(problem) }));
    throw error;
  }
}

/** Brings the processes back as they were. */
async function restoreMemory(node: NodeContext, paused: Paused, request: ResumeSandbox): Promise<Running> {
  const { record } = paused;
  const { sandboxId, image, resources, agentDir, bootId, controlToken } = record;
  const snapshot = await openSnapshot(requireMemory(node), memoryOf(node, sandboxId)).catch(error => {
    throw damaged(sandboxId, error);
  });
  let written: RunningRecord | undefined;
  try {
    const { namespace, ended } = await restoreBlank(node, {
      ...{ sandboxId, snapshot, resources, agentDir, bootId, controlToken, ...volumesOf(record) },
      disk: node.records.diskOf(sandboxId),
      layers: await Promise.all(image.layers.map(digest => node.layers.mount(digest))),
      network: request.network,
      // The last moment at which a crash finds the sandbox as it was when it was paused.
      async onRestored(blank) {
        const next = runningRecordOf(record, placeOf(blank), request, 'memory');
        await node.records.write(next);
        written = next;
      },
    });
    if (!written) throw new AtollError('internal', 'the sandbox was restored without being noted');
    return { record: written, namespace, ended };
  } catch (error) {
    if (written) {
      // Some of it may have run and changed files that others have in memory: only the files can be told to be whole.
      paused.record = { ...record, kept: 'filesystem' };
      await node.records.write(paused.record);
    }
    throw error;
  }
}

/** Starts a paused sandbox from its files: new processes, a new boot ID, nothing in what does not outlive a boot. */
async function boot(node: NodeContext, { record }: Paused, request: ResumeSandbox): Promise<Running> {
  const { sandboxId, image, resources } = record;
  const { network } = request;
  const layers = await Promise.all(image.layers.map(digest => node.layers.mount(digest)));
  const disk = node.records.diskOf(sandboxId);
  await repairDisk(node, disk);
  const driver = node.drivers.of(record.driver ?? 'crun');
  const blank = driver.adoptsRoot ? await blankWithDisk(node, resources, disk) : await startRooted(node, { driver, sandboxId, resources, layers, network, disk, ...volumesOf(record) });
  const { slot, pid, namespace, controlToken, bootId, ended } = blank;
  try {
    if (driver.adoptsRoot) {
      emptyVolatile(node, slot);
      await node.egress.apply({ sandboxId, slot, namespace }, network);
      driver.setLimits(slot, resources);
      await driver.giveRoot(slot, pid, { layers, disk: slotMountPoint(node, slot) });
      await mountVolumes(node, slot, pid, record.volumes);
    }
    const caBundle = node.egress.trusted(network);
    await initAgent(namespace, controlToken, {
      envVars: request.envVars,
      accessToken: request.accessToken,
      timestamp: new Date().toISOString(),
      defaultUser: image.defaultUser,
      defaultWorkdir: image.defaultWorkdir,
      logOutput: node.logOutput,
      ...(caBundle !== undefined && { caBundle }),
    });
    // Whatever keeps the template's server from starting again: the files must stay within reach.
    await startTemplateServer(namespace, image, request.accessToken).catch(error => {
      node.log.warn('the start command failed when a sandbox was resumed from its files', { sandboxId, error: messageOf(error) });
    });
    const booted = { ...record, controlToken, bootId, agentDir: node.agentDir };
    const written = runningRecordOf(booted, placeOf(blank), request, 'filesystem');
    // From here on a restart of the platform adopts the sandbox.
    await node.records.write(written);
    return { record: written, namespace, ended };
  } catch (error) {
    await releaseBlank(node, blank);
    throw error;
  }
}

/** What must be new to a sandbox that goes on from its memory. One whose agent does not listen is a sandbox all the same. */
async function refreshAgent(node: NodeContext, { record, namespace }: Running, { accessToken }: ResumeSandbox): Promise<void> {
  const caBundle = node.egress.trusted(record.network);
  const init = { accessToken, timestamp: new Date().toISOString(), entropy: freshEntropy(), logOutput: node.logOutput, ...(caBundle !== undefined && { caBundle }) };
  await initAgent(namespace, record.controlToken, init).catch(error => {
    node.log.warn('the agent of a resumed sandbox does not answer', { sandboxId: record.sandboxId, error: messageOf(error) });
  });
}

/** What was kept of the memory is history once the sandbox runs. */
async function dropMemory(node: NodeContext, sandboxId: string): Promise<void> {
  const memory = memoryOf(node, sandboxId);
  if (!existsSync(memory)) return;
  const stale = staleMemoryOf(node, sandboxId);
  await rm(stale, { recursive: true, force: true });
  renameSync(memory, stale);
  // Nobody waits for it: it may be large.
  void rm(stale, { recursive: true, force: true }).catch(error => {
    node.log.warn('the memory of a resumed sandbox could not be deleted', { sandboxId, error: messageOf(error) });
  });
}

function placeOf({ slot, pid }: Blank): ProcessPlace {
  const startTicks = startTicksOf(pid);
  if (startTicks === undefined) throw new AtollError('internal', 'the sandbox ended while it was resumed');
  return { slot: slot.number, pid, startTicks };
}

function runningRecordOf(paused: PausedRecord, place: ProcessPlace, request: ResumeSandbox, from: Kept): RunningRecord {
  const { sandboxId, controlToken, bootId, resources, image, agentDir, driver = 'crun' } = paused;
  const { nextExecutionId: executionId, network } = request;
  return { state: 'running', sandboxId, executionId, ...place, startedAtMs: Date.now(), resumedFrom: from, controlToken, bootId, resources, network, image, agentDir, driver, ...volumesOf(paused) };
}

function notPausedHere(sandboxId: string): AtollError {
  return new AtollError('not_found', `sandbox ${sandboxId} is not paused on this node`);
}

function damaged(sandboxId: string, cause: unknown): unknown {
  if (!(cause instanceof AtollError) || (cause.detail !== 'snapshot_damaged' && cause.code !== 'not_found')) return cause;
  return new AtollError('internal', `the memory that sandbox ${sandboxId} has kept is damaged: ${cause.message}`, { detail: 'sandbox_state_damaged', cause });
}
