import { nft } from './nft.ts';

/** Additions to the packet rules, many of them in one run of `nft`. */
type NftQueue = {
  /** Scripts that wait at the same time run together, and each on its own where that fails. */
  run(script: string): Promise<void>;
};

type Waiting = { script: string; resolve(): void; reject(error: unknown): void };

/** Makes a queue in which nothing waits. `apply`: applies a script as one transaction. */
export function createNftQueue(apply = nft): NftQueue {
  const waiting: Waiting[] = [];
  let running = false;

  const runAll = async (batch: Waiting[]) => {
    try {
      await apply(batch.map(({ script }) => script).join(''));
      for (const { resolve } of batch) resolve();
    } catch (error) {
      const [only] = batch;
      if (batch.length === 1) only?.reject(error);
      else for (const { script, resolve, reject } of batch) await apply(script).then(resolve, reject);
    }
  };

  const drain = async () => {
    running = true;
    while (waiting.length > 0) await runAll(waiting.splice(0));
    running = false;
  };

  return {
    run: script =>
      new Promise((resolve, reject) => {
        waiting.push({ script, resolve, reject });
        if (!running) void drain();
      }),
  };
}
