import { messageOf } from '../../../base/error.ts';
import { createSemaphore } from '../../../base/concurrency/semaphore.ts';
import type { Log } from '../../../base/telemetry/log.ts';

/** How many slots are freed at a time: each keeps the kernel busy, which creates need. */
const atOnce = 8;
/** Time between two attempts to free a slot. */
const retryDelayMs = 1_000;

/**
 * Removes what ended sandboxes still hold of the host. This happens after the caller that ended them was answered: no
 * process is left then, nothing leads to the sandbox any more, and what a crash leaves is removed by the next start.
 */
export type Cleanups = {
  /** Runs `free` until it succeeds. `name` is that of the slot, for the log. */
  begin(name: string, free: () => Promise<void>): void;
  /** Whether something is being removed. */
  underWay(): boolean;
  /** Resolves when the next removal under way is done. */
  next(): Promise<void>;
  /** Resolves when everything is removed, or could not be at the last attempt. */
  stop(): Promise<void>;
};

/** No cleanups yet. */
export function createCleanups(log: Log): Cleanups {
  const semaphore = createSemaphore(atOnce);
  const pending = new Set<Promise<void>>();
  const stopping = Promise.withResolvers<void>();
  let stopped = false;

  const untilGone = async (name: string, free: () => Promise<void>) => {
    // The caller that ended the sandbox is answered first.
    await new Promise(resolve => setImmediate(resolve));
    for (;;) {
      try {
        return await semaphore.run(free);
      } catch (error) {
        log.error('what a sandbox has left could not be removed', { slot: name, error: messageOf(error) });
        if (stopped) return;
        await Promise.race([Bun.sleep(retryDelayMs), stopping.promise]);
      }
    }
  };

  return {
    begin(name, free) {
      const cleanup = untilGone(name, free);
      pending.add(cleanup);
      void cleanup.then(() => pending.delete(cleanup));
    },
    underWay: () => pending.size > 0,
    next: () => Promise.race(pending),
    async stop() {
      stopped = true;
      stopping.resolve();
      while (pending.size > 0) await Promise.all(pending);
    },
  };
}
