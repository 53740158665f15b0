import { newUuid } from '../../base/id.ts';
import { randomHex } from '../../base/secret.ts';
import type { SandboxNetwork, SandboxResources } from '../../protocol/node.ts';
import type { SandboxVolume } from '../../protocol/volume.ts';
import { agentListens } from '../agent-call.ts';
import type { NodeContext } from '../context.ts';
import type { Driver } from '../drivers/driver.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { linkUp, watch, type Blank } from './blank.ts';
import { emptyVolatile } from './empty-volatile.ts';
import { releaseSlot } from './release.ts';
import { releaseBlank } from './remove.ts';
import { hideVolumes, showVolumes } from './show-volumes.ts';
import { slotDisk, slotMountPoint } from './slot-disk.ts';
import { takeSlot } from './take-slot.ts';

export type RootedOptions = {
  driver: Driver;
  sandboxId: string;
  resources: SandboxResources;
  /** Mount points, lowest first. */
  layers: string[];
  network: SandboxNetwork;
  volumes?: SandboxVolume[];
  /** The image of a disk that exists, of a sandbox that boots again; absent: a new one. */
  disk?: string;
};

/**
 * Starts a sandbox whose driver wants its root file system and its network from the start. It is like a blank sandbox
 * that has been furnished but for the agent's settings. A failed start leaves nothing new. Such starts take turns with others.
 */
export function startRooted(node: NodeContext, options: RootedOptions): Promise<Blank> {
  return node.starts.run(() => start(node, options));
}

async function start(node: NodeContext, options: RootedOptions): Promise<Blank> {
  const { driver, sandboxId, resources, layers, network } = options;
  const slot = await takeSlot(node);
  await using undo = new AsyncDisposableStack();
  const disk = slotMountPoint(node, slot);
  const controlToken = randomHex(32);
  const bootId = newUuid();
  let processes: { pid: number; namespace: NetworkNamespace; ended: Promise<void> } | undefined;
  try {
    if (options.disk === undefined) await node.disks.create(slotDisk(node, slot), resources.diskMiB, disk);
    else {
      await node.disks.open(options.disk, disk);
      emptyVolatile(node, slot);
    }
    const volumes = await showVolumes(node, slot, options.volumes ?? []);
    undo.defer(() => hideVolumes(node, volumes));
    const { pid } = await driver.startBlank(slot, { controlToken, bootId, resources, root: { layers, disk, volumes } });
    const { ended } = await watch(node, slot, pid);
    const namespace = driver.openNetwork(slot, pid);
    processes = { pid, namespace, ended };
    await linkUp(node, slot, pid);
    // Before any of the user's programs runs.
    await node.egress.apply({ sandboxId, slot, namespace }, network);
    await driver.begin?.(slot, pid);
    await agentListens(namespace, ended);
    return { slot, resources, controlToken, bootId, ...processes };
  } catch (error) {
    if (processes) await releaseBlank(node, { slot, ...processes });
    else await releaseSlot(node, slot);
    throw error;
  }
}
