import { join } from 'node:path';
import { randomHex } from '../../base/secret.ts';
import type { SandboxResources } from '../../protocol/node.ts';
import { agentListens } from '../agent-call.ts';
import type { NodeContext } from '../context.ts';
import { gatewayAddress, innerAddress, innerMac, outerMac, type Slot } from '../layout.ts';
import { openNetworkNamespace, type NetworkNamespace } from '../native/netns.ts';
import { releaseSlot } from './release.ts';

/** A started sandbox with a listening agent and an empty disk that belongs to nobody yet: no root, no settings. */
export type Blank = {
  slot: Slot;
  pid: number;
  controlToken: string;
  namespace: NetworkNamespace;
  /** Settles when all its processes have ended. */
  ended: Promise<void>;
  resources: SandboxResources;
};

/**
 * Starts a blank sandbox. A failed start leaves nothing.
 * Starts wait for each other beyond a few at a time: all at once, each would take as long as all of them.
 */
export function startBlank(node: NodeContext, resources: SandboxResources): Promise<Blank> {
  return node.starts.run(() => start(node, resources));
}

async function start(node: NodeContext, resources: SandboxResources): Promise<Blank> {
  const slot = node.slots.take();
  // The disk and the processes do not need each other until the root is put in place.
  const outcomes = await Promise.allSettled([
    startProcesses(node, slot, resources),
    node.disks.create(slotDisk(node, slot), resources.diskMiB, slotMountPoint(node, slot)),
  ]);
  const [processes] = outcomes;
  const failed = outcomes.find(outcome => outcome.status === 'rejected');
  if (processes.status === 'fulfilled' && !failed) return { slot, resources, ...processes.value };
  if (processes.status === 'fulfilled') processes.value.namespace.close();
  await releaseSlot(node, slot);
  throw failed?.reason;
}

/** The image of a disk that belongs to no sandbox yet. */
export function slotDisk(node: NodeContext, slot: Slot): string {
  return join(node.layout.disks, `${slot.name}.img`);
}

/** Where the slot's disk is mounted in the helper's namespace. */
export function slotMountPoint(node: NodeContext, slot: Slot): string {
  return join(node.layout.mounts, slot.name);
}

/** `ended` settles when the sandbox's first process, and with it every other, has ended. */
export async function watch(node: NodeContext, slot: Slot, pid: number): Promise<{ ended: Promise<void> }> {
  const ended = node.helper.exited(slot.name);
  await node.helper.call('watch', slot.name, pid);
  return { ended };
}

async function startProcesses(node: NodeContext, slot: Slot, resources: SandboxResources) {
  const controlToken = randomHex(32);
  const { pid } = await node.driver.startBlank(slot, { controlToken, resources });
  const { ended } = await watch(node, slot, pid);
  const namespace = openNetworkNamespace(pid);
  try {
    await linkUp(node, slot, pid);
    await agentListens(namespace, ended);
    return { pid, controlToken, namespace, ended };
  } catch (error) {
    namespace.close();
    throw error;
  }
}

async function linkUp(node: NodeContext, slot: Slot, pid: number): Promise<void> {
  await node.helper.call('link-up', pid, slot.interfaceName, slot.address, innerAddress, gatewayAddress, outerMac, innerMac, node.mtu);
}
