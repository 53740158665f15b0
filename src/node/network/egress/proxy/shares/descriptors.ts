import { readFileSync } from 'node:fs';

/** Descriptors that belong to no sandbox: listeners, the channel to the platform, what the runtime opens for itself. */
const reserved = 256;
/** The limit that is assumed if it can't be read. */
const assumed = 1024;
/** One sandbox may have at most this part of what is left for all others. */
const partOfFree = 1 / 8;

/** Somebody who takes descriptors, and how many they have. */
export type Holder = { held: number };

/** Gives a descriptor back. Call it when the descriptor is closed; calling it again does nothing. */
export type Release = () => void;

/** The process's descriptors, shared among sandboxes. */
export type Descriptors = {
  /**
   * Counts one descriptor for the holder; undefined if its share is used up. The share is a part of what is left, so
   * that there is always something left: a holder that takes all it can gets a ninth, and the next one a ninth of the
   * rest.
   */
  take(holder: Holder): Release | undefined;
  readonly free: number;
};

/** Divides this many open files, none of which is in use. */
export function createDescriptors(total: number): Descriptors {
  let free = total;
  return {
    take(holder) {
      if (holder.held >= Math.ceil(free * partOfFree)) return undefined;
      holder.held++;
      free--;
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        holder.held--;
        free++;
      };
    },
    get free() {
      return free;
    },
  };
}

/** How many descriptors this process may open for sandboxes. */
export function descriptorsForSandboxes(): number {
  const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return Math.max(Number(limit ?? assumed) - reserved, 1);
}
