import { KeyedMutex } from './keyed-mutex.ts';

type Sharers = { count: number; gone: PromiseWithResolvers<void> };

/**
 * For each key, work that may run beside others of its kind, and work that must run alone. Whoever comes after work
 * that waits to run alone waits for it, so that it gets its turn however many share.
 */
export class SharedMutex<Key> {
  readonly #entering = new KeyedMutex<Key>();
  readonly #sharing = new Map<Key, Sharers>();

  /** Runs `work` beside others that share the key, and answers as it does. */
  async share<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const leave = await this.#entering.run(key, async () => this.#enter(key));
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Runs `work` while nobody shares the key, and answers as it does. */
  async alone<T>(key: Key, work: () => Promise<T>): Promise<T> {
    return await this.#entering.run(key, async () => {
      await this.#sharing.get(key)?.gone.promise;
      return await work();
    });
  }

  #enter(key: Key): () => void {
    const sharers = this.#sharing.get(key) ?? { count: 0, gone: Promise.withResolvers<void>() };
    this.#sharing.set(key, sharers);
    sharers.count++;
    return () => {
      if (--sharers.count > 0) return;
      this.#sharing.delete(key);
      sharers.gone.resolve();
    };
  }
}
