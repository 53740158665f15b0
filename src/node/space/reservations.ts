/** Room on the host's disk that somebody is about to take. Disposal gives back what is left of it. */
export type Room = Disposable & {
  /** So much of it is on the disk now, and counts there. */
  wrote(bytes: number): void;
};

/** What was promised of the host's disk and is not written yet: nobody else may be promised it. */
export class Reservations {
  #bytes = 0;

  /** All of it together. */
  get bytes(): number {
    return this.#bytes;
  }

  add(bytes: number): Room {
    let left = bytes;
    this.#bytes += bytes;
    const give = (some: number) => {
      const given = Math.min(some, left);
      left -= given;
      this.#bytes -= given;
    };
    return { wrote: give, [Symbol.dispose]: () => give(left) };
  }
}
