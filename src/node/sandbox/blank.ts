import { randomHex } from '../../base/secret.ts';
import type { SandboxResources } from '../../protocol/node.ts';
import { agentListens } from '../agent-call.ts';
import type { NodeContext } from '../context.ts';
import { gatewayAddress, innerAddress, innerMac, outerMac, type Slot } from '../layout.ts';
import { openNetworkNamespace, type NetworkNamespace } from '../native/netns.ts';
import { releaseSlot } from './release.ts';

/** A started sandbox with a listening agent that belongs to nobody yet: no root file system, no settings. */
export type Blank = {
  slot: Slot;
  pid: number;
  controlToken: string;
  namespace: NetworkNamespace;
  ended: Promise<void>;
};

/** Starts a blank sandbox. A failed start leaves nothing. */
export async function startBlank(node: NodeContext, resources: SandboxResources): Promise<Blank> {
  const slot = node.slots.take();
  const controlToken = randomHex(32);
  let namespace: NetworkNamespace | undefined;
  try {
    const { pid } = await node.driver.startBlank(slot, { controlToken, resources });
    const { ended } = await watch(node, slot, pid);
    namespace = openNetworkNamespace(pid);
    await linkUp(node, slot, pid);
    await agentListens(namespace, ended);
    return { slot, pid, controlToken, namespace, ended };
  } catch (error) {
    namespace?.close();
    await releaseSlot(node, slot);
    throw error;
  }
}

/** `ended` settles when the sandbox's first process, and with it every other, has ended. */
export async function watch(node: NodeContext, slot: Slot, pid: number): Promise<{ ended: Promise<void> }> {
  const ended = node.helper.exited(slot.name);
  await node.helper.call('watch', slot.name, pid);
  return { ended };
}

async function linkUp(node: NodeContext, slot: Slot, pid: number): Promise<void> {
  await node.helper.call('link-up', pid, slot.interfaceName, slot.address, innerAddress, gatewayAddress, outerMac, innerMac, node.mtu);
}
