/**
 * Runs tasks that may need a proof: when one fails for lack of it, `ask` requests a proof, and the task runs again with
 * it. However many tasks need one at the same time, it is requested once; tasks refused before it was given run again
 * with that one.
 */
export function sharedProof(ask: () => Promise<boolean>) {
  let asked: Promise<boolean> | null = null;
  let given = 0;
  const askOnce = async () => {
    try {
      const isProven = await ask();
      if (isProven) given++;
      return isProven;
    } finally {
      asked = null;
    }
  };
  return async <T>(task: () => Promise<T>, isWanting: (error: unknown) => boolean): Promise<T> => {
    for (;;) {
      const before = given;
      try {
        return await task();
      } catch (error) {
        if (!isWanting(error)) throw error;
        if (given !== before) continue;
        if (!(await (asked ??= askOnce()))) throw error;
        return task();
      }
    }
  };
}
