/** Lets a bounded number of tasks run at a time. The others wait, and begin in the order in which they came. */
export type Semaphore = {
  /** Runs `task` as soon as there is room, and answers as it does. */
  run<T>(task: () => Promise<T>): Promise<T>;
  /** Tasks that wait. */
  waiting(): number;
};

/** A semaphore that lets `atOnce` tasks run at a time. */
export function createSemaphore(atOnce: number): Semaphore {
  const queue: (() => void)[] = [];
  let running = 0;
  return {
    async run(task) {
      if (running >= atOnce) await new Promise<void>(resolve => queue.push(resolve));
      else running++;
      try {
        return await task();
      } finally {
        // The place goes straight to the next in line: nobody who comes meanwhile can take it.
        const next = queue.shift();
        if (next) next();
        else running--;
      }
    },
    waiting: () => queue.length,
  };
}
