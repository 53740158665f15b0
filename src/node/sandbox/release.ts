import { existsSync, rmSync } from 'node:fs';
import type { NodeContext } from '../context.ts';
import type { Slot } from '../layout.ts';
import { slotDisk, slotMountPoint } from './slot-disk.ts';

/** How long the kernel may take to remove the link of an ended sandbox by itself before it is told to. */
const linkGoneTimeoutMs = 1_000;
/** Between two looks whether a link is gone, longer each time: with many sandboxes ending, the kernel takes them together. */
const linkPollMs = { first: 5, max: 80 } as const;

/** Removes everything of a slot and frees it. */
export async function releaseSlot(node: NodeContext, slot: Slot): Promise<void> {
  await emptySlot(node, slot);
  node.slots.give(slot);
}

/** Removes everything of a slot. Repeatable; works on what a crash left. */
export async function emptySlot(node: NodeContext, slot: Slot): Promise<void> {
  await node.driver.remove(slot);
  await Promise.all([linkGone(node, slot), node.disks.close(slotMountPoint(node, slot))]);
  rmSync(slotDisk(node, slot), { force: true });
  node.volumes.release(slot);
}

/**
 * The kernel removes a link with its network namespace, many at a time and off everyone's path;
 * removing one explicitly blocks the helper for a grace period of the kernel.
 */
async function linkGone(node: NodeContext, slot: Slot): Promise<void> {
  const deadline = performance.now() + linkGoneTimeoutMs;
  for (let waitMs: number = linkPollMs.first; existsSync(`/sys/class/net/${slot.interfaceName}`); waitMs = Math.min(waitMs * 2, linkPollMs.max)) {
    if (performance.now() > deadline) return void (await node.helper.call('link-down', slot.interfaceName));
    await Bun.sleep(waitMs);
  }
}
