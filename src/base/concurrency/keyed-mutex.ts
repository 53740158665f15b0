/** A mutex for each key. Waiters of one key get it in the order in which they asked. */
export class KeyedMutex<Key> {
  /** Settles when the last waiter for a key has released it. */
  readonly #lines = new Map<Key, Promise<void>>();

  /** Says whether anybody holds the mutex of a key or waits for it. */
  has(key: Key): boolean {
    return this.#lines.has(key);
  }

  /** Waits for the mutex of a key. The holder releases it by disposing of it, once. */
  async lock(key: Key): Promise<Disposable> {
    const before = this.#lines.get(key);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const line = before ? before.then(() => released) : released;
    this.#lines.set(key, line);
    void line.then(() => this.#lines.get(key) === line && this.#lines.delete(key));
    await before;
    return { [Symbol.dispose]: release };
  }

  /** Runs `work` while it holds the mutex of a key, and answers as it does. */
  async run<T>(key: Key, work: () => Promise<T>): Promise<T> {
    using _ = await this.lock(key);
    return await work();
  }
}
