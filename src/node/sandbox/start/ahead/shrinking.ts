import type { Standby } from '../standby.ts';

/** Time between two checks whether a grown pool is still wanted. */
const lookMs = 30_000;

/** Ends the surplus of a grown pool. */
type Shrinking = {
  /** Leaves no more than its size, and expects nothing more: the host is short. */
  shrink(): Promise<void>;
  stop(): void;
};

/** The pool that it shrinks. */
type PoolSide = {
  /** How many standby sandboxes it always keeps. */
  size: number;
  /** How many it keeps now: no fewer than `size`. */
  wanted(): number;
  ready: Set<Standby>;
  /** Whether there is room for more than `size`. */
  isRoomy(): boolean;
  /** Forgets what was wanted so far. */
  forget(): void;
  /** Removes one that is out of the pool; never fails. */
  release(standby: Standby): Promise<void>;
};

/** From now on, checks from time to time. */
export function createShrinking({ size, ready, ...pool }: PoolSide): Shrinking {
  const to = async (count: number) => {
    // Those with a root come last.
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
