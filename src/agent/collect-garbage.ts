/** Long enough for a burst of requests to end, short enough that its garbage does not stay for long. */
const delayMs = 5_000;
/** The first collection releases objects that the second one frees: streams and connections close in between. */
const secondDelayMs = 500;
/** Processor time between the two collections that only real work takes: an idle agent uses none. */
const workMs = 10;

/** The parts of the runtime used here; `usedMs`: processor time of this process so far. */
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
 * Collects garbage some time after work was done, and never without work: an idle agent must not cost anything. Answers
 * a function to call at each piece of work. During work the runtime also collects by itself. If a long answer is still
 * going on, it collects again after that.
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
