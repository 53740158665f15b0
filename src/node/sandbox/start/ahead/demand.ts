import type { Beginning } from '../restored-standby.ts';
import { createShortage } from './shortage.ts';

/** A snapshot that nobody has asked for in this long is not restored ahead. */
const recentMs = 5 * 60_000;
/** How many requests are remembered. */
const rememberedMax = 64;
/** A snapshot that was asked for only once may not be asked for again. */
const timesMin = 2;
/**
 * Forks begin together, with a snapshot that is deleted right after them: a create that begins with a snapshot this
 * soon after another is not counted. Builds' snapshots are not deleted: all of their creates count.
 */
const apartMs = 1_000;
/** Most that wait after creates that came together. */
const grownMax = 32;

/** What creates have asked for recently, and how much of it is worth preparing before they ask again. */
type Demand = {
  /** Called when a create has asked for it. */
  note(beginning: Beginning): void;
  /** Called when another one waits. */
  refilled(): void;
  /** Forgets what `isMeant` accepts, as if nobody had asked for it. */
  forget(isMeant: (beginning: Beginning) => boolean): void;
  /** What should wait, the most asked for first: one fewer than was asked for, at most as many together as may wait. */
  wanted(): { beginning: Beginning; count: number }[];
};

/** `size`: most that wait together, unless creates come together. `now`: see `createShortage`. */
export function createDemand(size: number, now: () => number): Demand {
  const shortage = createShortage(now);
  let asked: { beginning: Beginning; atMs: number; lastMs: number }[] = [];
  return {
    note(beginning) {
      const before = asked.findLast(one => isSame(one.beginning, beginning));
      const isTogether = before !== undefined && now() - before.lastMs < apartMs;
      if (before) before.lastMs = now();
      if (isTogether && !beginning.recordsOrigin) return;
      asked = [...asked, { beginning, atMs: now(), lastMs: now() }].slice(-rememberedMax);
      shortage.taken();
    },
    refilled: () => shortage.refilled(),
    forget(isMeant) {
      asked = asked.filter(({ beginning }) => !isMeant(beginning));
      if (asked.length === 0) shortage.forget();
    },
    wanted() {
      asked = asked.filter(({ atMs }) => atMs > now() - recentMs);
      const times: { beginning: Beginning; count: number }[] = [];
      for (const { beginning } of asked.toReversed()) {
        const known = times.find(one => isSame(one.beginning, beginning));
        if (known) known.count++;
        else times.push({ beginning, count: 1 });
      }
      let left = Math.max(size, Math.min(shortage.most(), grownMax));
      return times
        .filter(({ count }) => count >= timesMin)
        .sort((a, b) => b.count - a.count)
        .flatMap(({ beginning, count }) => {
          const share = Math.min(count - 1, left);
          left -= share;
          return share > 0 ? [{ beginning, count: share }] : [];
        });
    },
  };
}

/** Whether a sandbox that was restored for one can serve the other. */
export function isSame(a: Beginning, b: Beginning): boolean {
  return (
    a.snapshotId === b.snapshotId &&
    a.driver === b.driver &&
    Bun.deepEquals(a.image, b.image) &&
    Bun.deepEquals(a.resources, b.resources)
  );
}
