/** Values that take work to make, and that all share who use one at the same time. */
export class SharedWhileUsed<Key, T> {
  readonly #shared = new Map<Key, { value: Promise<T>; users: number }>();

  /**
   * The value for `key` that somebody uses, or a new one, until disposal. Users share a failure too, as long as one of
   * them waits for it.
   */
  async use(key: Key, make: () => Promise<T>): Promise<{ value: T } & Disposable> {
    const one = this.#shared.get(key) ?? { value: Promise.try(make), users: 0 };
    this.#shared.set(key, one);
    one.users++;
    const end = () => {
      if (--one.users === 0) this.#shared.delete(key);
    };
    try {
      return { value: await one.value, [Symbol.dispose]: end };
    } catch (error) {
      end();
      throw error;
    }
  }
}
