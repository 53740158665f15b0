/**
 * Does tasks that may take a proof: where one fails for want of it, `ask` asks for it, and with it the task is done
 * again. However many tasks want one at a time, it is asked for once; and what was refused before one was given is done
 * again with that one.
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
