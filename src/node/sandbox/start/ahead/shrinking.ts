import type { Standby } from '../standby.ts';

/** Between two looks whether a grown pool is still wanted. */
const lookMs = 30_000;

/** Ends what a grown pool has more than is wanted. */
type Shrinking = {
  /** Leaves no more than its size, and has nothing more expected: the host is short. */
  shrink(): Promise<void>;
  stop(): void;
};

/** The pool, for which it is done. */
type PoolSide = {
  /** Standby sandboxes that it keeps whatever is asked for. */
  size: number;
  /** Those that it keeps now: no fewer. */
  wanted(): number;
  ready: Set<Standby>;
  /** Whether there is room for more than `size`. */
  isRoomy(): boolean;
  /** Forgets what was wanted so far. */
  forget(): void;
  /** Removes one that is out of the pool; never fails. */
  release(standby: Standby): Promise<void>;
};

/** Looks now and then from now on. */
export function createShrinking({ size, ready, ...pool }: PoolSide): Shrinking {
  const to = async (count: number) => {
    // Those with a root last.
    const order = [...ready].toSorted((a, b) => Number(b.layers !== null) - Number(a.layers !== null));
    for (const standby of order.slice(count)) if (ready.delete(standby)) await pool.release(standby);
  };
  const shrink = () => {
    pool.forget();
    return to(size);
  };
  const looking = setInterval(() => {
    if (ready.size > size) void (pool.isRoomy() ? to(pool.wanted()) : shrink());
  }, lookMs).unref();
  return { shrink, stop: () => clearInterval(looking) };
}
