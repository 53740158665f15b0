import { AtollError, assert } from '../../../base/error.ts';
import { slotOf, slotsMax, type Slot } from '../../layout.ts';

/** Which slots of the installation are free. */
export type Slots = {
  /** Fails with `unavailable` when all are in use. */
  take(): Slot;
  /** Marks a slot that was found in use as used. */
  occupy(number: number): Slot;
  give(slot: Slot): void;
  used(): number;
};

/** The slots of an installation, all of them free. */
export function createSlots(installation: number): Slots {
  // The slot that has been free for longest is used first: nothing in the network still remembers its address.
  const free = new Set(Array.from({ length: slotsMax }, (_, number) => number));
  const occupy = (number: number): Slot => {
    assert(free.delete(number), `slot ${number} is used twice`);
    return slotOf(installation, number);
  };
  return {
    take() {
      const [number] = free;
      if (number === undefined) {
        throw new AtollError(
          'unavailable',
          `this node runs ${slotsMax} sandboxes, its maximum; kill some or try later`,
          { detail: 'sandbox_capacity_unavailable' },
        );
      }
      return occupy(number);
    },
    occupy,
    give(slot) {
      assert(!free.has(slot.number), `slot ${slot.number} is given back twice`);
      free.add(slot.number);
    },
    used: () => slotsMax - free.size,
  };
}
