import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { Disks } from '../../disks/disks.ts';
import { slotsMax, type Layout, type Slot } from '../../layout.ts';
import { forgetLater } from '../../snapshot/later-memory.ts';
import type { Helper } from '../../native/helper.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import type { Cleanups } from './cleanups.ts';
import { slotDisk, slotMountPoint } from './slot-disk.ts';
import type { Slots } from './slots.ts';

/** How long the kernel may take to remove the link of an ended sandbox by itself before the helper does it. */
const linkGoneTimeoutMs = 1_000;
/**
 * Time between two looks whether a link is gone, longer each time: when many sandboxes end, the kernel removes their
 * links together.
 */
const linkPollMs = { first: 5, max: 80 } as const;

/** What slots hold of the host: taken before a sandbox starts, given back when nothing of it is left. */
export type SlotHost = {
  /** A free slot. Waits for one that is about to be free. Errors: `unavailable` when all are in use. */
  take(): Promise<Slot>;
  /**
   * Removes everything of a slot. Repeatable; also removes what a crash has left. `drivers`: those that may keep
   * something of it.
   */
  empty(slot: Slot, drivers: Driver[]): Promise<void>;
  /** Marks an empty slot as free. */
  give(slot: Slot): void;
  /** Empties a slot and makes it free. */
  release(slot: Slot, drivers: Driver[]): Promise<void>;
};

/** The slots of a node with what they hold. */
export function createSlotHost(options: {
  layout: Layout;
  helper: Helper;
  disks: Disks;
  volumes: Volumes;
  slots: Slots;
  cleanups: Cleanups;
  log: Log;
}): SlotHost {
  const { log, layout, helper, disks, volumes, slots, cleanups } = options;
  const host: SlotHost = {
    async take() {
      while (slots.used() === slotsMax && cleanups.underWay()) await cleanups.next();
      return slots.take();
    },
    async empty(slot, drivers) {
      for (const driver of drivers) await driver.remove(slot);
      const reason = forgetLater(layout.run, slot.name);
      if (reason)
        log.warn('a sandbox ended because its memory could not all be brought back', { slot: slot.name, reason });
      await Promise.all([linkGone(helper, slot), disks.close(slotMountPoint(layout, slot))]);
      // A sandbox's disk has gone with the sandbox. A build's may have gigabytes: nobody else waits for its removal.
      if (existsSync(slotDisk(layout, slot))) await rm(slotDisk(layout, slot), { force: true });
      volumes.release(slot);
    },
    give: slot => slots.give(slot),
    async release(slot, drivers) {
      await host.empty(slot, drivers);
      slots.give(slot);
    },
  };
  return host;
}

/**
 * The kernel removes a link with its network namespace, many at a time and off everyone's path; removing one
 * explicitly blocks the helper for a grace period of the kernel.
 */
async function linkGone(helper: Helper, slot: Slot): Promise<void> {
  const deadline = performance.now() + linkGoneTimeoutMs;
  for (
    let waitMs: number = linkPollMs.first;
    existsSync(`/sys/class/net/${slot.interfaceName}`);
    waitMs = Math.min(waitMs * 2, linkPollMs.max)
  ) {
    if (performance.now() > deadline) return helper.call('link-down', { name: slot.interfaceName });
    await Bun.sleep(waitMs);
  }
}
