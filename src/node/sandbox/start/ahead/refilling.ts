import { cpus } from 'node:os';

/**
 * How many standby sandboxes start at a time if half of them are missing; otherwise one does, so that creates find a
 * free core.
 */
const atOnceMax = cpus().length;
/** Pause before each one that a grown pool adds: the creates that made it grow need the processors now. */
const growDelayMs = 50;

/** Starts standby sandboxes when some are missing. */
type Refilling = {
  /** Looks how many are missing, and begins to start them. */
  begin(): void;
  underWay(): number;
  /** Resolves when nothing is under way any more. Nothing begins after this. */
  stop(): Promise<void>;
};

/** The pool that it refills. */
type PoolSide = {
  /** How many standby sandboxes it always keeps. */
  size: number;
  /** How many it keeps now: no fewer than `size`. */
  wanted(): number;
  /** How many are missing to `count`, not counting those that are being started. */
  missingOf(count: number): number;
  /** Whether there is room for one more than `size`. */
  isRoomy(): boolean;
  /** Whether somebody waits for a create or a kill: the pool does not grow meanwhile. */
  isAwaited(): boolean;
  /** Starts one; never fails. */
  start(): Promise<void>;
  /** Called when one was started, or could not be. */
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
