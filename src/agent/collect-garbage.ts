/** Long enough for a burst of requests to be over, short enough that what it left does not stay for long. */
const delayMs = 5_000;

/**
 * Collects garbage some time after there was work, and never where there was none: an idle agent must not cost anything.
 * Answers the function that notes work. While work goes on, the runtime also collects as memory is asked for.
 */
export function collectGarbageAfterWork(): () => void {
  let timer: Timer | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      Bun.gc(true);
    }, delayMs);
  };
}
