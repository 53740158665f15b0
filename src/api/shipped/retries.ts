import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';

/** Between two tries, ms. A mirror may be away for a moment. */
const delaysMs = [10_000, 60_000, 300_000];

/** With what tries are made. */
type Tries = {
  log: Pick<Log, 'error'>;
  /** Ends the waiting, and what fails after it is not reported. */
  signal: AbortSignal;
  /** Milliseconds before the second try, the third, and so on. */
  delays?: readonly number[];
};

/** Builds `what`, if it must be by several tries. Never fails: what went wrong each time is in the log. */
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
