/** Long enough for a burst of requests to be over, short enough that what it left does not stay for long. */
const delayMs = 5_000;
/** The first collection lets go of what the second one frees: streams and connections close in between. */
const secondDelayMs = 500;
/** Processor time between the two that only work takes: an idle agent uses none. */
const workMs = 10;

/** What the runtime does of it; `usedMs`: processor time of this process so far. */
type Runtime = { collect(): void; giveBack(): void; usedMs(): number };

const bun: Runtime = {
  collect: () => Bun.gc(true),
  giveBack: () => Bun.shrink(),
  usedMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
};

/**
 * Collects garbage some time after there was work, and never without: an idle agent must not cost anything. Answers a
 * function to call at each piece of work. During work the runtime also collects by itself. Where a long answer goes on
 * meanwhile, it collects again after that.
 */
export function collectGarbageAfterWork(runtime: Runtime = bun): () => void {
  let timer: Timer | undefined;
  const worked = () => {
    timer ??= setTimeout(() => {
      runtime.collect();
      const usedMs = runtime.usedMs();
      timer = setTimeout(() => {
        timer = undefined;
        const isWorking = runtime.usedMs() - usedMs > workMs;
        runtime.collect();
        runtime.giveBack();
        if (isWorking) worked();
      }, secondDelayMs);
    }, delayMs);
  };
  return worked;
}
