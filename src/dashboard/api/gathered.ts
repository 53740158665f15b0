/** Least pause between two runs, ms: a busy team changes something many times a second. */
const pauseMs = 300;

/**
 * Collects stale paths and runs `renew` on them, one run at a time: what comes during a run waits for the next, so that
 * no pending answer is thrown away. Ends with `signal`.
 */
export function gathered(
  renew: (stale: string[]) => Promise<void>,
  signal: AbortSignal,
): (stale: readonly string[]) => void {
  const waiting = new Set<string>();
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    while (waiting.size > 0 && !signal.aborted) {
      const stale = [...waiting];
      waiting.clear();
      const startedAt = performance.now();
      // A page shows for itself what could not be read.
      await renew(stale).catch(() => undefined);
      // A page that shows much asks for much: this takes at most half of the time.
      const tookMs = performance.now() - startedAt;
      await new Promise(resolve => setTimeout(resolve, Math.max(pauseMs, tookMs)));
    }
    isRunning = false;
  };
  return stale => {
    for (const path of stale) waiting.add(path);
    if (!isRunning) void run();
  };
}
