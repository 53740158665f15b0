import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { CreateSandbox } from '../../protocol/node.ts';
import { initAgent } from '../agent-call.ts';
import type { NodeContext, Running } from '../context.ts';
import { setOffline } from '../network/host-table.ts';
import { type Blank, startBlank } from './blank.ts';
import { startTicksOf } from './record.ts';
import { onEnded, removeSandbox } from './remove.ts';

/** Starts a sandbox; the same execution is started once, however often it is asked for. */
export function createSandbox(node: NodeContext, request: CreateSandbox): Promise<Running> {
  const running = node.running.get(request.sandboxId);
  if (running?.record.executionId === request.executionId) return Promise.resolve(running);
  if (running) throw new AtollError('conflict', `sandbox ${request.sandboxId} runs already`);
  const known = node.creating.get(request.executionId);
  if (known) return known;
  const creating = create(node, request).finally(() => node.creating.delete(request.executionId));
  node.creating.set(request.executionId, creating);
  return creating;
}

async function create(node: NodeContext, request: CreateSandbox): Promise<Running> {
  const { sandboxId, executionId, resources, network } = request;
  const layers = await Promise.all(request.image.layers.map(digest => node.layers.mount(digest)));
  // The disk and the processes do not need each other until the root is put in place.
  const [disk, started] = await Promise.allSettled([createDisk(node, sandboxId, resources.diskMiB), startBlank(node, resources)]);
  const blank = started.status === 'fulfilled' ? started.value : undefined;
  try {
    if (disk.status === 'rejected') throw disk.reason;
    if (started.status === 'rejected') throw started.reason;
    const running = await furnish(node, started.value, request, { layers, disk: disk.value });
    node.running.set(sandboxId, running);
    onEnded(node, running);
    return running;
  } catch (error) {
    await removeSandbox(node, { sandboxId, executionId, offline: !network.internetAccess, ...(blank && { blank }) });
    throw error;
  }
}

async function createDisk(node: NodeContext, sandboxId: string, diskMiB: number): Promise<string> {
  mkdirSync(node.records.directoryOf(sandboxId), { recursive: true, mode: 0o700 });
  const mountPoint = diskMountPoint(node, sandboxId);
  await node.disks.create(node.records.diskOf(sandboxId), diskMiB, mountPoint);
  return mountPoint;
}

/** Where a sandbox's disk is mounted in the helper's namespace while the sandbox runs. */
export function diskMountPoint(node: NodeContext, sandboxId: string): string {
  return join(node.layout.mounts, 'disks', sandboxId);
}

/** Makes a blank sandbox the one that was asked for. */
async function furnish(node: NodeContext, blank: Blank, request: CreateSandbox, root: { layers: string[]; disk: string }): Promise<Running> {
  const { slot, pid, namespace, controlToken, ended } = blank;
  const { sandboxId, executionId, resources, network, image } = request;
  // Before any of the user's files, and so any of the user's programs, is there.
  if (!network.internetAccess) await setOffline(node.layout.installation, slot.interfaceName, true);
  await node.driver.giveRoot(slot, pid, root);
  await initAgent(namespace, controlToken, {
    envVars: request.envVars,
    accessToken: request.accessToken,
    timestamp: new Date().toISOString(),
    defaultUser: image.defaultUser,
    defaultWorkdir: image.defaultWorkdir,
  });
  const startTicks = startTicksOf(pid);
  if (startTicks === undefined) throw new AtollError('internal', 'the sandbox ended while it was started');
  const startedAtMs = Date.now();
  const record = { sandboxId, executionId, slot: slot.number, pid, startTicks, controlToken, startedAtMs, resources, network };
  await node.records.write(record);
  return { record, namespace, ended };
}
