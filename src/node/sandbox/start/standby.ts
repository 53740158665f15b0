import { rmSync } from 'node:fs';
import { newUuid } from '../../../base/id.ts';
import { randomHex } from '../../../base/crypto/secret.ts';
import type { FairSemaphore } from '../../../base/concurrency/fair-semaphore.ts';
import type { SandboxResources } from '../../../protocol/node.ts';
import { warmAgent } from '../../agent-client/call.ts';
import { connectToAgent } from '../../agent-client/listens.ts';
import type { Disks } from '../../disks/disks.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { Layout, Slot } from '../../layout.ts';
import type { ProcessControl, Processes } from '../slot/processes.ts';
import { slotDisk, slotMountPoint } from '../slot/slot-disk.ts';
import type { SlotHost } from '../slot/slot-host.ts';

/** The processes of a sandbox whose agent listens, and what it was started with. */
export type Started = {
  processes: Processes;
  /** Proves the platform to the agent. */
  controlToken: string;
  /** The kernel's boot ID (UUID) that its programs read. */
  bootId: string;
};

/** A started sandbox with an empty disk that belongs to nobody yet: it has no settings. */
export type Standby = Started & {
  resources: SandboxResources;
  /** Layer digests of the root that it already has, lowest first; null: it has none. */
  layers: readonly string[] | null;
};

/** What starting standby sandboxes needs. */
export type StandbyParts = {
  layout: Layout;
  disks: Disks;
  slotHost: SlotHost;
  processControl: ProcessControl;
  /** Bounds the starts at a time, by their teams: all at once, each would take as long as all of them. */
  starts: FairSemaphore;
};

/** The standby sandbox that is wanted. */
type StandbyOrder = {
  driver: Driver;
  resources: SandboxResources;
  /** The image of an existing disk; null: a new one. */
  disk: string | null;
  /** The team that waits for it; absent: nobody yet. */
  teamId?: string;
};

/** Starts a standby sandbox. A failed start leaves nothing new. */
export function startStandby(parts: StandbyParts, order: StandbyOrder): Promise<Standby> {
  return parts.starts.run(order.teamId, () => start(parts, order));
}

/** Puts an existing disk in the place of a standby sandbox's own. If that fails the standby sandbox is released. */
export async function exchangeDisk(parts: StandbyParts, standby: Standby, disk: string): Promise<Standby> {
  const { layout, disks, processControl } = parts;
  const { slot } = standby.processes;
  try {
    await disks.close(slotMountPoint(layout, slot));
    rmSync(slotDisk(layout, slot));
    await disks.open(disk, slotMountPoint(layout, slot));
    return standby;
  } catch (error) {
    await processControl.release(standby.processes);
    throw error;
  }
}

async function start(parts: StandbyParts, { driver, resources, disk }: StandbyOrder): Promise<Standby> {
  const { layout, disks, slotHost } = parts;
  const slot = await slotHost.take();
  const mountPoint = slotMountPoint(layout, slot);
  // The disk and the processes do not need each other until the root is put in place.
  const outcomes = await Promise.allSettled([
    startProcesses(parts.processControl, driver, slot, resources),
    disk === null ? disks.create(slotDisk(layout, slot), resources.diskMiB, mountPoint) : disks.open(disk, mountPoint),
  ]);
  const [started] = outcomes;
  const failed = outcomes.find(outcome => outcome.status === 'rejected');
  if (started.status === 'fulfilled' && !failed) return { resources, layers: null, ...started.value };
  if (started.status === 'fulfilled') started.value.processes.namespace.close();
  await slotHost.release(slot, [driver]);
  throw failed?.reason;
}

async function startProcesses(
  processControl: ProcessControl,
  driver: Driver,
  slot: Slot,
  resources: SandboxResources,
): Promise<Started> {
  const controlToken = randomHex(32);
  const bootId = newUuid();
  const { pid, announced } = await driver.start(slot, { controlToken, bootId, resources, root: null });
  const processes = await processControl.watch(driver, slot, pid);
  try {
    await processControl.linkUp(driver, slot, pid);
    await warmAgent(await connectToAgent(processes.namespace, processes.ended, announced), controlToken);
    return { processes, controlToken, bootId };
  } catch (error) {
    processes.namespace.close();
    throw error;
  }
}
