import { messageOf } from '../error.ts';
import type { Log } from '../telemetry/log.ts';

/** A loop that runs one function again and again, never twice at a time. */
export type Loop = {
  /** Runs as soon as the present run, if any, has ended. */
  wake(): void;
  /** Ends the loop when its present run has ended. */
  stop(): Promise<void>;
};

/**
 * Longest time between a failed run and the next one, milliseconds: what the loop needs, e.g. a database, may be back
 * any moment.
 */
const failedRetryMs = 2_000;

/** Runs `run` now and again `intervalMs()` after each end, never twice at once. Logs what it throws. */
export function startLoop(options: {
  name: string;
  intervalMs(): number;
  run(): Promise<void>;
  log: Log;
  onRun?: (name: string, outcome: 'ok' | 'failed') => void;
}): Loop {
  let stopped = false;
  let woken = false;
  let wakeUp = () => {};
  const ended = (async () => {
    while (!stopped) {
      woken = false;
      let failed = false;
      try {
        await options.run();
        options.onRun?.(options.name, 'ok');
      } catch (error) {
        failed = true;
        options.onRun?.(options.name, 'failed');
        const cause = error instanceof Error && error.cause !== undefined ? { cause: messageOf(error.cause) } : {};
        const fields = { reconciler: options.name, error: messageOf(error), ...cause };
        options.log.warn('reconciler failed and will run again', fields);
      }
      if (woken || stopped) continue;
      await new Promise<void>(resolve => {
        const timer = setTimeout(
          resolve,
          failed ? Math.min(failedRetryMs, options.intervalMs()) : options.intervalMs(),
        );
        wakeUp = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  })();
  const wake = () => {
    woken = true;
    wakeUp();
  };
  return {
    wake,
    async stop() {
      stopped = true;
      wake();
      await ended;
    },
  };
}
