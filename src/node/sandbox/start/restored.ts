import { mkdirSync } from 'node:fs';
import { basename } from 'node:path';
import type { SandboxResources } from '../../../protocol/node.ts';
import type { SandboxVolume } from '../../../protocol/volume.ts';
import type { Driver } from '../../drivers/driver.ts';
import { AtollError } from '../../../base/error.ts';
import type { Slot } from '../../layout.ts';
import type { Helper } from '../../native/helper.ts';
import { checkpointFailed } from '../../snapshot/criu.ts';
import type { LaterMeasure } from '../../snapshot/later-pages.ts';
import { restore, type OpenSnapshot, type RestoreHost } from '../../snapshot/restore.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import { volumesAround } from '../slot/mount-volumes.ts';
import type { Processes } from '../slot/processes.ts';
import { explainRestore } from '../keep/checkpoint-support.ts';
import { hideVolumes, showVolumes } from '../slot/show-volumes.ts';
import { slotDisk, slotMountPoint } from '../slot/slot-disk.ts';
import type { StandbyParts, Started } from './standby.ts';

/** What restoring processes needs. */
export type RestoredParts = StandbyParts & {
  helper: Helper;
  volumes: Volumes;
  /** The current copy of the agent. */
  agentDir: string;
  /** Earlier copies that the helper shows, for sandboxes that continue from their memory. */
  agentsShown: Set<string>;
};

/** What to restore, and as which sandbox. */
type RestoreOrder = {
  /** The team whose starts it counts with; absent: nobody waits for it yet, or the team is not known. */
  teamId?: string;
  snapshot: OpenSnapshot;
  driver: Driver;
  /**
   * The image of its existing disk; or a function that makes it at the slot's place, where it belongs to nobody yet.
   */
  disk: string | { make(image: string): Promise<void> };
  /** Mount points, lowest first. */
  points: string[];
  resources: SandboxResources;
  volumes: SandboxVolume[];
  /** The copy of the agent that the processes in the snapshot run from. */
  agentDir: string;
  bootId: string;
  controlToken: string;
  /** Called when its link is there but no process: nothing passes before it has a policy. */
  onLinked?(processes: Processes): Promise<void>;
  /** Called when no process has run yet. If it fails, none will. */
  onRestored?(processes: Processes): Promise<void>;
  /** Freezes the processes at the point where they would continue, instead of letting them run. */
  frozen?: boolean;
  /** How much of their memory may come while they already run, if this host can do that; absent: none. */
  later?: LaterMeasure | undefined;
};

/**
 * Brings the processes of a snapshot back to life in a slot of its own, on a disk. A failed restore leaves nothing
 * new. Restores take turns with starts.
 */
export function restoreProcesses(parts: RestoredParts, host: RestoreHost, order: RestoreOrder): Promise<Started> {
  const late = lateVolumes(order);
  // The start of a volume does not hold up the starts of others.
  return parts.volumes
    .change(volumesAround(order.volumes, late), () =>
      parts.starts.run(order.teamId, () =>
        order.later && host.canBringLater
          ? restoreWithLater(parts, host, order)
          : restoreInSlot(parts, host, { ...order, later: undefined }),
      ),
    )
    .catch((error: unknown) => {
      throw explainRestore(error, order.volumes);
    });
}

/** If later memory is not possible, which shows before any process has run, all memory comes at once. */
async function restoreWithLater(parts: RestoredParts, host: RestoreHost, order: RestoreOrder): Promise<Started> {
  let mayRun = false;
  const watched: RestoreOrder = {
    ...order,
    async onRestored(processes) {
      mayRun = true;
      await order.onRestored?.(processes);
    },
  };
  return restoreInSlot(parts, host, watched).catch(error => {
    if (mayRun || !(error instanceof AtollError) || error.detail !== checkpointFailed) throw error;
    return restoreInSlot(parts, host, { ...order, later: undefined });
  });
}

/** The volumes that the snapshot's sandbox did not have. */
function lateVolumes({ snapshot, volumes }: RestoreOrder): SandboxVolume[] {
  const had = new Set(snapshot.manifest.mounts.map(({ point }) => point));
  return volumes.filter(({ path }) => !had.has(path));
}

async function restoreInSlot(parts: RestoredParts, host: RestoreHost, order: RestoreOrder): Promise<Started> {
  const { layout, helper, slotHost, processControl } = parts;
  const { driver, bootId, controlToken, snapshot } = order;
  const slot = await slotHost.take();
  await using undo = new AsyncDisposableStack();
  let processes: Processes | undefined;
  const restored = (): Processes => {
    if (!processes) throw new AtollError('internal', 'CRIU restored a sandbox without its namespaces');
    return processes;
  };
  try {
    const shown = await showVolumes(parts, slot, order.volumes);
    undo.defer(() => hideVolumes(helper, shown));
    const [agentDir] = await Promise.all([showAgent(parts, order.agentDir), openDisk(parts, order, slot)]);
    await restore(host, snapshot, {
      slot,
      cgroupPath: driver.cgroupPath(slot),
      resources: order.resources,
      diskMount: slotMountPoint(layout, slot),
      layers: order.points,
      agentDir,
      // The boot ID stays the same, because nothing boots.
      ownFilesDir: driver.makeOwnFiles(slot, { bootId, resources: order.resources }),
      sysDir: layout.sysTree,
      ...(order.later && { later: order.later }),
      volumes: Object.fromEntries(shown.map(({ point, path }) => [path, point])),
      async onNamespaces(pid) {
        processes = await processControl.watch(driver, slot, pid);
        await processControl.linkUp(driver, slot, pid);
        await order.onLinked?.(processes);
      },
      async onRestored(pid) {
        const late = new Set(lateVolumes(order).map(({ path }) => path));
        for (const volume of shown) if (late.has(volume.path)) await driver.mountVolume(slot, pid, volume);
        await order.onRestored?.(restored());
      },
      ...(order.frozen && { beforeResume: async () => driver.beginFreeze(slot) }),
    });
    // If that could not begin in time, they have run for a moment.
    if (order.frozen) await driver.freeze(slot);
    return { processes: restored(), controlToken, bootId };
  } catch (error) {
    // What was frozen before something failed would not end by a signal alone.
    if (order.frozen) driver.killFrozen(slot);
    if (processes) await processControl.release(processes);
    else await slotHost.release(slot, [driver]);
    throw error;
  }
}

async function openDisk({ layout, disks }: RestoredParts, { disk }: RestoreOrder, slot: Slot): Promise<void> {
  const image = typeof disk === 'string' ? disk : slotDisk(layout, slot);
  if (typeof disk !== 'string') await disk.make(image);
  await disks.open(image, slotMountPoint(layout, slot));
}

/** Where a copy of the agent is in the helper's namespace, for a program that counts as a stranger. */
async function showAgent(parts: RestoredParts, agentDir: string): Promise<string> {
  const { layout, helper, agentsShown } = parts;
  if (agentDir === parts.agentDir) return layout.agentMount;
  const mountPoint = `${layout.agentMount}-${basename(agentDir)}`;
  if (!agentsShown.has(agentDir)) {
    mkdirSync(mountPoint, { recursive: true });
    agentsShown.add(agentDir);
    try {
      await helper.call('show', { directory: agentDir, at: mountPoint });
    } catch (error) {
      agentsShown.delete(agentDir);
      throw error;
    }
  }
  return mountPoint;
}
