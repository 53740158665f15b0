/** Room on the host's disk that somebody is about to take. Disposal gives back what is left of it. */
export type Room = Disposable & {
  /** Reports that this many bytes of it are on the disk now, where they count. */
  wrote(bytes: number): void;
};

/** Room on the host's disk that was promised and is not written yet: nobody else may be promised it. */
export class Reservations {
  #bytes = 0;

  /** The total of all promises. */
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
