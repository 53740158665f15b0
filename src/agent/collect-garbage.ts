/** Long enough for a burst of requests to be over, short enough that what it left does not stay for long. */
const delayMs = 5_000;
/** The first collection lets go of what the second one frees: streams and connections close in between. */
const secondDelayMs = 500;

/**
 * Collects garbage some time after there was work, and never without: an idle agent must not cost anything. Answers a
 * function to call at each piece of work. During work the runtime also collects by itself.
 */
export function collectGarbageAfterWork(): () => void {
  let timer: Timer | undefined;
  const again = () => {
    timer = undefined;
    Bun.gc(true);
    Bun.shrink();
  };
  return () => {
    timer ??= setTimeout(() => {
      Bun.gc(true);
      timer = setTimeout(again, secondDelayMs);
    }, delayMs);
  };
}
