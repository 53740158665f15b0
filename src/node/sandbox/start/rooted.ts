import { newUuid } from '../../../base/id.ts';
import { randomHex } from '../../../base/crypto/secret.ts';
import { agentListens } from '../../agent-client/listens.ts';
import type { Helper } from '../../native/helper.ts';
import type { Egress } from '../../network/egress/egress.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import type { Processes } from '../slot/processes.ts';
import { volumesAround } from '../slot/mount-volumes.ts';
import { hideVolumes, showVolumes } from '../slot/show-volumes.ts';
import { slotDisk, slotMountPoint } from '../slot/slot-disk.ts';
import type { BeginOrder } from './begin-order.ts';
import { emptyVolatile, type VolatileParts } from './empty-volatile.ts';
import type { StandbyParts, Started } from './standby.ts';

/** What starting sandboxes with their root needs. */
export type RootedParts = StandbyParts & VolatileParts & { helper: Helper; volumes: Volumes; egress: Egress };

/** Without a network policy nothing of it gets out. */
type RootedOrder = Omit<BeginOrder, 'network'> & { network: BeginOrder['network'] | null };

/**
 * Starts a sandbox whose driver wants its root file system and its network from the start. A failed start leaves
 * nothing new. Such starts take turns with others. `points`: its mounted layers, lowest first.
 */
export function startRooted(parts: RootedParts, order: RootedOrder, points: string[]): Promise<Started> {
  // The start of a volume does not hold up the starts of others.
  return parts.volumes.change(volumesAround(order.volumes), () =>
    parts.starts.run(order.teamId, () => start(parts, order, points)),
  );
}

async function start(parts: RootedParts, order: RootedOrder, points: string[]): Promise<Started> {
  const { layout, disks, helper, slotHost, processControl, egress } = parts;
  const { driver, sandboxId, hostname, resources, network } = order;
  const slot = await slotHost.take();
  await using undo = new AsyncDisposableStack();
  const disk = slotMountPoint(layout, slot);
  const controlToken = randomHex(32);
  const bootId = newUuid();
  let processes: Processes | undefined;
  try {
    if (order.disk === null) await disks.create(slotDisk(layout, slot), resources.diskMiB, disk);
    else {
      await disks.open(order.disk, disk);
      emptyVolatile(parts, slot);
    }
    const volumes = await showVolumes(parts, slot, order.volumes);
    undo.defer(() => hideVolumes(helper, volumes));
    const root = { layers: points, disk, volumes, hostname };
    const { pid, announced } = await driver.start(slot, { controlToken, bootId, resources, root });
    processes = await processControl.watch(driver, slot, pid);
    await processControl.linkUp(driver, slot, pid);
    // This comes before any of the user's programs runs.
    if (network) await egress.apply({ sandboxId, slot, namespace: processes.namespace }, network);
    await driver.begin?.(slot, pid);
    await agentListens(processes.namespace, processes.ended, announced);
    return { processes, controlToken, bootId };
  } catch (error) {
    if (processes) await processControl.release(processes);
    else await slotHost.release(slot, [driver]);
    throw error;
  }
}
