/** Work that waits until the answer which it belongs to is on its way, and which no later request comes before. */
export type AfterAnswer = {
  /** Runs `work` when the present answer has been handed over. It must not throw. */
  later(work: () => void): void;
  /** Runs what waits now. For the beginning of each request. */
  settle(): void;
};

/** Nothing waits yet. */
export function createAfterAnswer(): AfterAnswer {
  let waiting: (() => void)[] = [];
  const settle = () => {
    if (waiting.length === 0) return;
    const works = waiting;
    waiting = [];
    for (const work of works) work();
  };
  return {
    later(work) {
      waiting.push(work);
      setImmediate(settle);
    },
    settle,
  };
}
