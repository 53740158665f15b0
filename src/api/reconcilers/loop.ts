import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';

export type Loop = {
  /** Runs as soon as the present run, if any, has ended. */
  wake(): void;
  /** Ends the loop when its present run has ended. */
  stop(): Promise<void>;
};

/** Runs `run` now and `intervalMs()` after the end of each run, never twice at once. What it throws is logged. */
export function startLoop(options: { name: string; intervalMs(): number; run(): Promise<void>; log: Log; onRun?: (name: string, outcome: 'ok' | 'failed') => void }): Loop {
  let stopped = false;
  let woken = false;
  let wakeUp = () => {};
  const ended = (async () => {
    while (!stopped) {
      woken = false;
      try {
        await options.run();
        options.onRun?.(options.name, 'ok');
      } catch (error) {
        options.onRun?.(options.name, 'failed');
        options.log.warn('reconciler failed and will run again', { reconciler: options.name, error: messageOf(error) });
      }
      if (woken || stopped) continue;
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, options.intervalMs());
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
