/** Work that waits until the answer it belongs to is on its way, and that runs before any later request. */
export type AfterAnswer = {
  /** Runs `work` once the current answer has been handed over. It must not throw. */
  later(work: () => void): void;
  /** Runs the waiting work now. Called at the beginning of each request. */
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
