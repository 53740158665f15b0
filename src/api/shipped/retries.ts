import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';

/** Waits between two attempts, ms. A mirror may be away for a moment. */
const delaysMs = [10_000, 60_000, 300_000];

/** What attempts need. */
type Tries = {
  log: Pick<Log, 'error'>;
  /** Ends the waiting; later failures are not reported. */
  signal: AbortSignal;
  /** Milliseconds before the second attempt, the third, and so on. */
  delays?: readonly number[];
};

/** Builds `what`, in several attempts if necessary. Never fails: each failure is in the log. */
export async function withRetries(
  what: string,
  build: () => Promise<void>,
  { log, signal, delays = delaysMs }: Tries,
): Promise<void> {
  for (const delayMs of [...delays, null]) {
    try {
      return await build();
    } catch (error) {
      if (signal.aborted) return;
      const next = delayMs === null ? 'the next start tries again' : `it is tried again in ${delayMs / 1000} s`;
      log.error(`${what} could not be built; ${next}`, { error: messageOf(error) });
      if (delayMs === null || !(await sleep(delayMs, true, { signal }).catch(() => false))) return;
    }
  }
}
