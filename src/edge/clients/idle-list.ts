/** A link of a list, kept by its owner, so that removing it needs no search. */
export class IdleLink<T> {
  readonly owner: T | null;
  previous: IdleLink<T>;
  next: IdleLink<T>;

  constructor(owner: T | null) {
    this.owner = owner;
    this.previous = this;
    this.next = this;
  }

  /** Removes it from its list, if it is in one. */
  unlink(): void {
    this.previous.next = this.next;
    this.next.previous = this.previous;
    this.previous = this;
    this.next = this;
  }
}

/** Idle items, in the order in which they became idle. */
export class IdleList<T> {
  /** Stands before the first and after the last item. */
  readonly #ends = new IdleLink<T>(null);

  /** The item that has been idle longest. */
  get oldest(): T | null {
    return this.#ends.next.owner;
  }

  /** Moves it to the end, wherever it was. */
  append(link: IdleLink<T>): void {
    link.unlink();
    link.previous = this.#ends.previous;
    link.next = this.#ends;
    link.previous.next = link;
    this.#ends.previous = link;
  }
}
