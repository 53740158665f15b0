import { step } from '../../../base/telemetry/trace.ts';
import type { Layers } from '../../layers/store.ts';
import { mountVolumes } from '../slot/mount-volumes.ts';
import { slotMountPoint } from '../slot/slot-disk.ts';
import type { BeginOrder } from './begin-order.ts';
import { emptyVolatile } from './empty-volatile.ts';
import type { Pool } from './ahead/pool.ts';
import { startRooted, type RootedParts } from './rooted.ts';
import { exchangeDisk, startStandby, type Standby, type Started } from './standby.ts';

/** What beginning processes needs. */
export type BeginParts = RootedParts & { layers: Layers };

/**
 * Begins processes anew, from a standby sandbox if the driver has such. Their agent listens and has no settings yet. A
 * failed begin leaves nothing new. `pool`: its standby sandboxes may be taken. Errors: `not_found` (a layer or
 * volume), `invalid` (a place where no volume can be mounted), `unavailable` (no slot), `internal`.
 */
export async function begin(parts: BeginParts, order: BeginOrder, pool: Pool | undefined): Promise<Started> {
  const { driver } = order;
  const points = await Promise.all(order.layers.map(digest => parts.layers.mount(digest)));
  if (!driver.capabilities.adoptsRoot) return step('rooted', () => startRooted(parts, order, points));
  const standby = await takeStandby(parts, order, pool);
  await configureStandby(parts, order, standby, points).catch(async error => {
    await parts.processControl.release(standby.processes);
    throw error;
  });
  return standby;
}

/** Takes or starts a standby sandbox with the requested disk. */
async function takeStandby(parts: BeginParts, order: BeginOrder, pool: Pool | undefined): Promise<Standby> {
  const { driver, resources, layers, disk } = order;
  const standby = pool?.take(driver, disk === null ? { resources, layers } : null);
  if (!standby) return step('standby', () => startStandby(parts, order));
  return disk === null ? standby : exchangeDisk(parts, standby, disk);
}

/** Turns a standby sandbox into the requested one. */
async function configureStandby(
  { layout, egress, volumes, ...parts }: BeginParts,
  order: BeginOrder,
  { processes, resources: present, layers }: Standby,
  points: string[],
): Promise<void> {
  const { slot, pid, namespace } = processes;
  const { driver, sandboxId, hostname, resources, network, disk } = order;
  if (disk !== null) emptyVolatile({ layout, ...parts }, slot);
  const giveRoot = async () => {
    if (present.cpuCount !== resources.cpuCount || present.memoryMiB !== resources.memoryMiB)
      await driver.resize(slot, pid, resources);
    await driver.giveRoot(slot, pid, { layers: points, disk: slotMountPoint(layout, slot) });
  };
  const takeRoot = async () => {
    await bothOf([layers === null ? giveRoot() : null, hostname ? driver.nameHost?.(pid, hostname) : null]);
    await mountVolumes(volumes, processes, order.volumes);
  };
  // The helper works while the rules are put in place. Nothing of the user's runs before the agent has its settings.
  await bothOf([step('root', takeRoot), step('egress', () => egress.apply({ sandboxId, slot, namespace }, network))]);
}

/** Waits for all of them, even if one fails: work under way must not meet its undoing. Throws the first error. */
async function bothOf(works: readonly unknown[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find(outcome => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}
