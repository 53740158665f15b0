import { AtollError, messageOf } from '../../base/error.ts';
import { step } from '../../base/trace.ts';
import type { CreateSandbox, SandboxResources } from '../../protocol/node.ts';
import { initAgent } from '../agent-call.ts';
import type { NodeContext, Running } from '../context.ts';
import type { Driver } from '../drivers/driver.ts';
import { admit } from './admission.ts';
import { startBlank, type Blank } from './blank.ts';
import { createFromMemory } from './create-from-memory.ts';
import { mountVolumes, volumesOf } from './mount-volumes.ts';
import { startTicksOf, type RunningRecord } from './record.ts';
import { slotDisk, slotMountPoint } from './slot-disk.ts';
import { onEnded, removeSandbox } from './remove.ts';
import { startRooted } from './start-rooted.ts';
import { startTemplateServer } from './start-command.ts';

/** Starts a sandbox; the same execution is started once, however often it is asked for. */
export function createSandbox(node: NodeContext, request: CreateSandbox): Promise<Running> {
  const running = node.running.get(request.sandboxId);
  if (running?.record.executionId === request.executionId) return Promise.resolve(running);
  if (running) throw new AtollError('conflict', `sandbox ${request.sandboxId} runs already`);
  if (node.paused.has(request.sandboxId)) throw new AtollError('conflict', `sandbox ${request.sandboxId} is paused`);
  const known = node.creating.get(request.executionId);
  if (known) return known;
  const creating = create(node, request).finally(() => node.creating.delete(request.executionId));
  node.creating.set(request.executionId, creating);
  return creating;
}

async function create(node: NodeContext, request: CreateSandbox): Promise<Running> {
  const { sandboxId, resources } = request;
  const beganMs = Date.now();
  await admit(node);
  const driver = node.drivers.of(request.image.driver);
  const { memorySnapshotId } = request.image;
  // What is kept of memory is crun's. Where that is not enough, the sandbox boots from the files.
  if (driver.name === 'crun' && memorySnapshotId !== undefined) return createWithMemory(node, request, memorySnapshotId, beganMs);
  const running = driver.name === 'crun' && (await createStarted(node, request, beganMs));
  if (running) return running;
  const layers = await Promise.all(request.image.layers.map(digest => node.layers.mount(digest)));
  const blank = driver.adoptsRoot
    ? (node.pool?.take(resources.diskMiB) ?? (await step('blank', () => startBlank(node, resources))))
    : await step('rooted', () => startRooted(node, { driver, sandboxId, resources, layers, network: request.network, ...volumesOf(request) }));
  try {
    return started(node, await furnish(node, blank, request, { layers, driver }), beganMs);
  } catch (error) {
    await removeSandbox(node, { sandboxId, blank });
    throw error;
  }
}

async function createWithMemory(node: NodeContext, request: CreateSandbox, snapshotId: string, beganMs: number, options: { notesOrigin?: boolean } = {}): Promise<Running> {
  try {
    return started(node, await createFromMemory(node, request, snapshotId, options), beganMs);
  } catch (error) {
    await node.records.remove(request.sandboxId);
    throw error;
  }
}

/**
 * With the start command running as the template's build has kept it, where that is of this sandbox's size. Undefined where
 * it is not or can't be used: the sandbox boots then, and starts the command.
 */
async function createStarted(node: NodeContext, request: CreateSandbox, beganMs: number): Promise<Running | undefined> {
  const { started: kept, ...image } = request.image;
  if (!kept || !node.memory.kept || limitsDiffer(kept.resources, request.resources) || volumesOf(request).volumes) return undefined;
  const { snapshotId, layers } = kept;
  try {
    return await step('memory', () => createWithMemory(node, { ...request, image: { ...image, layers, memorySnapshotId: snapshotId } }, snapshotId, beganMs, { notesOrigin: true }));
  } catch (error) {
    node.log.warn('a sandbox boots, because it can’t begin with the memory of its template', { sandboxId: request.sandboxId, error: messageOf(error) });
    return undefined;
  }
}

function started(node: NodeContext, running: Running, beganMs: number): Running {
  const { sandboxId, image, resources } = running.record;
  const { cpuCount, memoryMiB } = resources;
  node.running.set(sandboxId, running);
  node.logs.note(sandboxId, 'info', 'sandbox', `created from template ${image.templateId}`, {
    ...{ event: 'created', templateId: image.templateId, buildId: image.buildId },
    ...{ cpuCount: String(cpuCount), memoryMiB: String(memoryMiB), memory: String(image.memorySnapshotId !== undefined) },
  });
  node.logs.follow(running, beganMs);
  onEnded(node, running);
  return running;
}

/** Makes a blank sandbox the one that was asked for. */
async function furnish(node: NodeContext, blank: Blank, request: CreateSandbox, { layers, driver }: { layers: string[]; driver: Driver }): Promise<Running> {
  const { slot, pid, namespace, controlToken, ended } = blank;
  const { sandboxId, executionId, resources, network, image } = request;
  node.records.keptOf(sandboxId);
  node.disks.give(slotDisk(node, slot), node.records.diskOf(sandboxId));
  if (driver.adoptsRoot) {
    // Before any of the user's files, and so any of the user's programs, is there.
    await step('egress', () => node.egress.apply({ sandboxId, slot, namespace }, network));
    if (limitsDiffer(blank.resources, resources)) driver.setLimits(slot, resources);
    await step('root', () => driver.giveRoot(slot, pid, { layers, disk: slotMountPoint(node, slot) }));
    await mountVolumes(node, slot, pid, request.volumes);
  }
  const caBundle = node.egress.trusted(network);
  const init = {
    envVars: request.envVars,
    accessToken: request.accessToken,
    timestamp: new Date().toISOString(),
    defaultUser: image.defaultUser,
    defaultWorkdir: image.defaultWorkdir,
    logOutput: node.logOutput,
    ...(caBundle !== undefined && { caBundle }),
  };
  await step('init', () => initAgent(namespace, controlToken, init));
  await step('start-command', () => startTemplateServer(namespace, image, request.accessToken));
  const startTicks = startTicksOf(pid);
  if (startTicks === undefined) throw new AtollError('internal', 'the sandbox ended while it was started');
  const startedAtMs = Date.now();
  const place = { slot: slot.number, pid, startTicks, controlToken, bootId: blank.bootId };
  const record: RunningRecord = { state: 'running', sandboxId, executionId, ...place, startedAtMs, resources, network, image, agentDir: node.agentDir, driver: driver.name, ...volumesOf(request) };
  await step('record', () => node.records.write(record));
  return { record, namespace, ended };
}

function limitsDiffer(a: SandboxResources, b: SandboxResources): boolean {
  return a.cpuCount !== b.cpuCount || a.memoryMiB !== b.memoryMiB;
}
