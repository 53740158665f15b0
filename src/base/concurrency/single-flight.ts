/** Runs work at most once at a time for each key: callers that ask meanwhile share its outcome. */
export class SingleFlight<Key, T> {
  readonly #flights = new Map<Key, Promise<T>>();

  /**
   * The outcome of the run for `key` that is under way, or of a new one. Callers share a failure too, but it is not
   * remembered.
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

  /** Waits until everything that is under way now has ended, in whatever way. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#flights.values());
  }
}
