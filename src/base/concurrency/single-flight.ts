/** Work of which at most one run for each key is under way: who asks meanwhile shares its outcome. */
export class SingleFlight<Key, T> {
  readonly #flights = new Map<Key, Promise<T>>();

  /**
   * The outcome of the run for `key` that is under way, or of a new one. Callers share a failure too; nobody remembers
   * it.
   */
  run(key: Key, work: () => Promise<T>): Promise<T> {
    const known = this.#flights.get(key);
    if (known) return known;
    const flight = Promise.try(work);
    this.#flights.set(key, flight);
    const forget = () => void this.#flights.delete(key);
    flight.then(forget, forget);
    return flight;
  }

  /** The run that is under way for `key`. */
  underWay(key: Key): Promise<T> | undefined {
    return this.#flights.get(key);
  }

  /** Waits until what is under way now has ended, however it does. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#flights.values());
  }
}
