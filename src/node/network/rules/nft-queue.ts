import { nft } from './nft.ts';

/** Additions to the packet rules, many of which share one run of `nft`. */
type NftQueue = {
  /** Scripts that wait at the same time run together; if that fails, each runs on its own. */
  run(script: string): Promise<void>;
};

type Waiting = { script: string; resolve(): void; reject(error: unknown): void };

/** Makes an empty queue. `apply` applies a script as one transaction. */
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
