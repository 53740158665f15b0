import { mkdirSync } from 'node:fs';
import { basename } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { SandboxNetwork, SandboxResources } from '../../protocol/node.ts';
import type { SandboxVolume } from '../../protocol/volume.ts';
import type { NodeContext } from '../context.ts';
import { openNetworkNamespace, type NetworkNamespace } from '../native/netns.ts';
import { restore, type OpenSnapshot } from '../snapshot/restore.ts';
import { linkUp, watch, type Blank } from './blank.ts';
import { requireMemory } from './memory.ts';
import { releaseSlot } from './release.ts';
import { releaseBlank } from './remove.ts';
import { hideVolumes, showVolumes } from './show-volumes.ts';
import { slotMountPoint } from './slot-disk.ts';
import { takeSlot } from './take-slot.ts';

export type RestoreOptions = {
  sandboxId: string;
  snapshot: OpenSnapshot;
  /** The image of its disk, which exists. */
  disk: string;
  /** Mount points, lowest first. */
  layers: string[];
  resources: SandboxResources;
  network: SandboxNetwork;
  /** Of the sandbox that the snapshot is of. */
  agentDir: string;
  bootId: string;
  controlToken: string;
  /** Absent: none. */
  volumes?: SandboxVolume[];
  /** Called when no process has run yet. If it fails, none will. */
  onRestored?(blank: Blank): Promise<void>;
};

/**
 * Brings the processes of a snapshot back to life in a slot of its own, on a disk. It is like a blank sandbox that has its
 * root already. A failed restore leaves nothing new. Restores take turns with starts.
 */
export function restoreBlank(node: NodeContext, options: RestoreOptions): Promise<Blank> {
  return node.starts.run(() => restoreInSlot(node, options));
}

async function restoreInSlot(node: NodeContext, options: RestoreOptions): Promise<Blank> {
  const { sandboxId, resources, network, bootId, controlToken } = options;
  const slot = await takeSlot(node);
  await using undo = new AsyncDisposableStack();
  let processes: { pid: number; namespace: NetworkNamespace; ended: Promise<void> } | undefined;
  const blank = (): Blank => {
    if (!processes) throw new AtollError('internal', 'CRIU restored a sandbox without its namespaces');
    return { slot, resources, bootId, controlToken, ...processes };
  };
  try {
    const shown = await showVolumes(node, slot, options.volumes ?? []);
    undo.defer(() => hideVolumes(node, shown));
    const [agentDir] = await Promise.all([showAgent(node, options.agentDir), node.disks.open(options.disk, slotMountPoint(node, slot))]);
    await restore(requireMemory(node), options.snapshot, {
      slot,
      cgroupPath: node.driver.cgroupPath(slot),
      resources,
      diskMount: slotMountPoint(node, slot),
      layers: options.layers,
      agentDir,
      bootIdFile: node.driver.writeBootId(slot, bootId),
      sysDir: node.layout.sysTree,
      volumes: Object.fromEntries(shown.map(({ point, path }) => [path, point])),
      async onNamespaces(pid) {
        const { ended } = await watch(node, slot, pid);
        const namespace = openNetworkNamespace(pid);
        processes = { pid, namespace, ended };
        await linkUp(node, slot, pid);
        await node.egress.apply({ sandboxId, slot, namespace }, network);
      },
      async onRestored(pid) {
        // Those that the sandbox of the snapshot did not have.
        for (const { path, source } of shown.filter(({ path }) => !options.snapshot.manifest.mounts.some(({ point }) => point === path))) {
          await node.driver.mountVolume(slot, pid, { source, path });
        }
        await options.onRestored?.(blank());
      },
    });
    return blank();
  } catch (error) {
    if (processes) await releaseBlank(node, { slot, ...processes });
    else await releaseSlot(node, slot);
    throw error;
  }
}

/** Where a copy of the agent is in the helper's namespace, for one who passes as a stranger. */
async function showAgent(node: NodeContext, agentDir: string): Promise<string> {
  if (agentDir === node.agentDir) return node.layout.agentMount;
  const mountPoint = `${node.layout.agentMount}-${basename(agentDir)}`;
  if (!node.agentsShown.has(agentDir)) {
    mkdirSync(mountPoint, { recursive: true });
    node.agentsShown.add(agentDir);
    await node.helper.call('show', agentDir, mountPoint);
  }
  return mountPoint;
}
