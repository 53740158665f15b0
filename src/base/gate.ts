/** Lets a bounded number of tasks run at a time; the others wait in the order in which they came. */
export type Gate = {
  /** Runs `task` as soon as there is room, and answers as it does. */
  run<T>(task: () => Promise<T>): Promise<T>;
  waiting(): number;
};

export function createGate(atOnce: number): Gate {
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
