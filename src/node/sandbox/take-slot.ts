import type { NodeContext } from '../context.ts';
import { slotsMax, type Slot } from '../layout.ts';

/** A free slot. One that is about to be free is waited for. Fails with `unavailable` when all are in use. */
export async function takeSlot(node: NodeContext): Promise<Slot> {
  while (node.slots.used() === slotsMax && node.releases.underWay()) await node.releases.next();
  return node.slots.take();
}
