/** Least pause between two runs, ms: a busy team changes something many times a second. */
const pauseMs = 300;

/**
 * Gathers what is stale and has `renew` run with it, once at a time: what comes during a run waits for the next, so
 * that no answer under way is thrown away. Ends with `signal`.
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
      // What could not be read says so on its page.
      await renew(stale).catch(() => undefined);
      // Who shows much asks for much: half of the time at most.
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
