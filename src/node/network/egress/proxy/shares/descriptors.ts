import { readFileSync } from 'node:fs';

/** Descriptors that are no sandbox's: listeners, the channel to the platform, what the runtime opens for itself. */
const reserved = 256;
/** Where the limit can't be read. */
const assumed = 1024;
/** One sandbox may have at most this part of what is left for all others. */
const partOfFree = 1 / 8;

/** Who takes descriptors, and how many it has. */
export type Holder = { held: number };

/** Gives a descriptor back. To be called when it is closed; again, it does nothing. */
export type Release = () => void;

/** The process's descriptors, shared among sandboxes. */
export type Descriptors = {
  /**
   * Counts one for the holder; undefined where its share is used up. That is a part of what is left, so that there is
   * always something left: one that takes all it can gets a ninth, and so does the next one of the rest.
   */
  take(holder: Holder): Release | undefined;
  readonly free: number;
};

/** Shares of so many open files, none of them in use. */
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
