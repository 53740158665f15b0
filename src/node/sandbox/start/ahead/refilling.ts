import { cpus } from 'node:os';

/**
 * How many standby sandboxes are started at a time where half of them are missing; else one, so that creates find a
 * core free.
 */
const atOnceMax = cpus().length;
/** Before each that a grown pool has more: the creates that made it grow have work for the processors now. */
const growDelayMs = 50;

/** Starts standby sandboxes where some are missing. */
type Refilling = {
  /** Looks how many are missing, and begins. */
  begin(): void;
  underWay(): number;
  /** Resolves when nothing is under way any more. Nothing begins then. */
  stop(): Promise<void>;
};

/** The pool, for which it is done. */
type PoolSide = {
  /** Standby sandboxes that it keeps whatever is asked for. */
  size: number;
  /** Those that it keeps now: no fewer. */
  wanted(): number;
  /** How many fewer than so many it has, those that are being started aside. */
  missingOf(count: number): number;
  /** Whether there is room for one more than `size`. */
  isRoomy(): boolean;
  /** Whether somebody waits for a create or a kill: a pool does not grow beside these. */
  isAwaited(): boolean;
  /** Starts one; never fails. */
  start(): Promise<void>;
  /** Hears that one was started, or could not be. */
  changed(): void;
};

/** Nothing is under way yet. */
export function createRefilling({ size, ...pool }: PoolSide): Refilling {
  const starting = new Set<Promise<void>>();
  let growing: Timer | undefined;
  let stopped = false;

  const missingOf = (count: number) => pool.missingOf(count) - starting.size;
  const start = () => {
    const started = pool.start();
    starting.add(started);
    void started.finally(() => {
      starting.delete(started);
      begin();
      pool.changed();
    });
  };
  const grow = () => {
    growing = undefined;
    if (pool.isAwaited()) begin();
    else if (missingOf(pool.wanted()) > 0 && pool.isRoomy()) start();
  };
  const begin = () => {
    const atOnce = missingOf(size) * 2 >= size ? atOnceMax : 1;
    while (!stopped && starting.size < atOnce && missingOf(size) > 0) start();
    if (!stopped && starting.size === 0 && missingOf(pool.wanted()) > 0) growing ??= setTimeout(grow, growDelayMs);
  };
  return {
    begin,
    underWay: () => starting.size,
    async stop() {
      stopped = true;
      clearTimeout(growing);
      await Promise.all(starting);
    },
  };
}
