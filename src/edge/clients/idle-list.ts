/** A place in a list, which its owner keeps: taking it out of the list costs no search. */
export class IdleLink<T> {
  readonly owner: T | null;
  previous: IdleLink<T>;
  next: IdleLink<T>;

  constructor(owner: T | null) {
    this.owner = owner;
    this.previous = this;
    this.next = this;
  }

  /** Takes it out of its list, if it is in one. */
  unlink(): void {
    this.previous.next = this.next;
    this.next.previous = this.previous;
    this.previous = this;
    this.next = this;
  }
}

/** What is idle, in the order in which it became so. */
export class IdleList<T> {
  /** Before the first and after the last. */
  readonly #ends = new IdleLink<T>(null);

  /** What is idle for longest. */
  get oldest(): T | null {
    return this.#ends.next.owner;
  }

  /** Puts it last, wherever it was. */
  append(link: IdleLink<T>): void {
    link.unlink();
    link.previous = this.#ends.previous;
    link.next = this.#ends;
    link.previous.next = link;
    this.#ends.previous = link;
  }
}
