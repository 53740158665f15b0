import { rmSync } from 'node:fs';
import { newUuid } from '../../base/id.ts';
import { randomHex } from '../../base/secret.ts';
import type { SandboxResources } from '../../protocol/node.ts';
import { agentListens } from '../agent-call.ts';
import type { NodeContext } from '../context.ts';
import { gatewayAddress, innerAddress, innerMac, outerMac, type Slot } from '../layout.ts';
import { openNetworkNamespace, type NetworkNamespace } from '../native/netns.ts';
import { releaseSlot } from './release.ts';
import { takeSlot } from './take-slot.ts';
import { releaseBlank } from './remove.ts';
import { slotDisk, slotMountPoint } from './slot-disk.ts';

/** A started sandbox with a listening agent and an empty disk that belongs to nobody yet: no root, no settings. */
export type Blank = {
  slot: Slot;
  pid: number;
  controlToken: string;
  bootId: string;
  namespace: NetworkNamespace;
  /** Settles when all its processes have ended. */
  ended: Promise<void>;
  resources: SandboxResources;
};

/**
 * Starts a blank sandbox, with a new disk or with the one whose image is given. A failed start leaves nothing new.
 * Starts wait for each other beyond a few at a time: all at once, each would take as long as all of them.
 */
export function startBlank(node: NodeContext, resources: SandboxResources, disk?: string): Promise<Blank> {
  return node.starts.run(() => start(node, resources, disk));
}

/** A blank sandbox with a disk that exists, from the pool where that has one. */
export async function blankWithDisk(node: NodeContext, resources: SandboxResources, disk: string): Promise<Blank> {
  const blank = node.pool?.take();
  if (!blank) return startBlank(node, resources, disk);
  const { slot } = blank;
  try {
    await node.disks.close(slotMountPoint(node, slot));
    rmSync(slotDisk(node, slot));
    await node.disks.open(disk, slotMountPoint(node, slot));
    return blank;
  } catch (error) {
    await releaseBlank(node, blank);
    throw error;
  }
}

async function start(node: NodeContext, resources: SandboxResources, disk: string | undefined): Promise<Blank> {
  const slot = await takeSlot(node);
  const mountPoint = slotMountPoint(node, slot);
  // The disk and the processes do not need each other until the root is put in place.
  const outcomes = await Promise.allSettled([
    startProcesses(node, slot, resources),
    disk === undefined ? node.disks.create(slotDisk(node, slot), resources.diskMiB, mountPoint) : node.disks.open(disk, mountPoint),
  ]);
  const [processes] = outcomes;
  const failed = outcomes.find(outcome => outcome.status === 'rejected');
  if (processes.status === 'fulfilled' && !failed) return { slot, resources, ...processes.value };
  if (processes.status === 'fulfilled') processes.value.namespace.close();
  await releaseSlot(node, slot);
  throw failed?.reason;
}

/** `ended` settles when the sandbox's first process, and with it every other, has ended. */
export async function watch(node: NodeContext, slot: Slot, pid: number): Promise<{ ended: Promise<void> }> {
  const ended = node.helper.exited(slot.name);
  await node.helper.call('watch', slot.name, pid);
  return { ended };
}

async function startProcesses(node: NodeContext, slot: Slot, resources: SandboxResources) {
  const controlToken = randomHex(32);
  const bootId = newUuid();
  const { pid } = await node.drivers.of('crun').startBlank(slot, { controlToken, bootId, resources });
  const { ended } = await watch(node, slot, pid);
  const namespace = openNetworkNamespace(pid);
  try {
    await linkUp(node, slot, pid);
    await agentListens(namespace, ended);
    return { pid, controlToken, bootId, namespace, ended };
  } catch (error) {
    namespace.close();
    throw error;
  }
}

/** Connects a sandbox with the host. */
export async function linkUp(node: NodeContext, slot: Slot, pid: number): Promise<void> {
  await node.helper.call('link-up', pid, slot.interfaceName, slot.address, innerAddress, gatewayAddress, outerMac, innerMac, node.mtu);
  node.egress.guard(slot);
}
