import { messageOf } from '../../base/error.ts';
import { createGate } from '../../base/gate.ts';
import type { Log } from '../../base/log.ts';

/** How many slots are freed at a time: each keeps the kernel busy, and creates shall find it free. */
const atOnce = 8;
/** Between two tries to free what could not be freed. */
const retryDelayMs = 1_000;

/**
 * What ended sandboxes still hold of the host. It is taken away after whoever ended them was answered: no process is left
 * then, nothing leads to the sandbox any more, and a crash leaves it for the next start to remove.
 */
export type Releases = {
  /** Takes something away, and tries again until that succeeds. */
  begin(name: string, free: () => Promise<void>): void;
  /** Something is being taken away. */
  underWay(): boolean;
  /** Resolves when the next of what is under way is gone. */
  next(): Promise<void>;
  /** Resolves when all is gone, or could not be removed at the last try. */
  stop(): Promise<void>;
};

export function createReleases(log: Log): Releases {
  const gate = createGate(atOnce);
  const pending = new Set<Promise<void>>();
  const stopping = Promise.withResolvers<void>();
  let stopped = false;

  const untilGone = async (name: string, free: () => Promise<void>) => {
    for (;;) {
      try {
        return await gate.run(free);
      } catch (error) {
        log.error('what a sandbox has left could not be removed', { slot: name, error: messageOf(error) });
        if (stopped) return;
        await Promise.race([Bun.sleep(retryDelayMs), stopping.promise]);
      }
    }
  };

  return {
    begin(name, free) {
      const release = untilGone(name, free);
      pending.add(release);
      void release.then(() => pending.delete(release));
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
