/** How long HTTP/2 on all connections together may take in one turn of the event loop, ms. */
const turnMs = 5;
/** Bytes handed over at a time: the work for one piece can't be interrupted. */
const pieceBytes = 16_384;

/** Does a part of some work; answers whether more can be done now. */
type Part = () => boolean;

/**
 * Shares the event loop between all connections that speak HTTP/2. HTTP/2's smallest frames take the runtime up to a
 * hundred times as long as other input of the same size, and one connection can bring megabytes of them in one turn.
 */
export class Http2Turns {
  readonly #waiting = new Set<Part>();
  readonly #nowMs: () => number;
  #leftMs = turnMs;
  #isAwaited = false;

  /** `nowMs`: a clock, for tests. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Does the first part now if nobody waits and this turn has time left; everything else waits for its turn. */
  begin(part: Part): void {
    if (this.#waiting.size > 0 || this.#leftMs <= 0) this.#waiting.add(part);
    else this.#carryOut(part);
    this.#awaitNext();
  }

  #carryOut(part: Part): void {
    const beganMs = this.#nowMs();
    // A set iterates in insertion order: whoever has just had a part comes last.
    if (part()) this.#waiting.add(part);
    this.#leftMs -= this.#nowMs() - beganMs;
  }

  #awaitNext(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    setImmediate(() => {
      this.#isAwaited = false;
      this.#leftMs = turnMs;
      for (const part of this.#waiting) {
        this.#waiting.delete(part);
        this.#carryOut(part);
        if (this.#leftMs <= 0) break;
      }
      if (this.#waiting.size > 0) this.#awaitNext();
    });
  }
}

/** Where the bytes of a connection come from, and where they go. */
type Ends = {
  /** Gives bytes to the runtime; null: they have ended. False: the runtime wants no more until it says so. */
  give(bytes: Buffer | null): boolean;
  pause(): void;
  resume(): void;
};

/** The bytes of one connection on their way to the runtime's HTTP/2. While some are waiting, no more are read. */
export class Http2Input {
  readonly #turns: Http2Turns;
  readonly #ends: Ends;
  readonly #part = () => this.#giveSome();
  #waiting: Buffer[] = [];
  #isFull = false;
  #isPaused = false;
  #isEnding = false;
  #isOver = false;

  constructor(turns: Http2Turns, ends: Ends) {
    this.#turns = turns;
    this.#ends = ends;
  }

  /** Some have come. */
  take(bytes: Buffer): void {
    if (this.#isOver || bytes.length === 0) return;
    this.#waiting.push(bytes);
    if (this.#waiting.length === 1 && !this.#isFull) this.#turns.begin(this.#part);
    if (this.#waiting.length > 0 || this.#isFull) this.#pause();
  }

  /** No more will come. */
  end(): void {
    this.#isEnding = true;
    this.#giveEnd();
  }

  /** The runtime wants more. */
  wanted(): void {
    const wasFull = this.#isFull;
    this.#isFull = false;
    if (this.#waiting.length === 0) this.#resume();
    else if (wasFull) this.#turns.begin(this.#part);
  }

  /** Nobody wants the waiting bytes any more. */
  drop(): void {
    this.#isOver = true;
    this.#waiting = [];
  }

  #giveSome(): boolean {
    const [first] = this.#waiting;
    if (first === undefined) return false;
    if (first.length > pieceBytes) this.#waiting[0] = first.subarray(pieceBytes);
    else this.#waiting.shift();
    if (!this.#ends.give(first.subarray(0, pieceBytes))) this.#isFull = true;
    this.#giveEnd();
    if (this.#waiting.length > 0) return !this.#isFull;
    if (!this.#isFull) this.#resume();
    return false;
  }

  #giveEnd(): void {
    if (!this.#isEnding || this.#isOver || this.#waiting.length > 0) return;
    this.#isOver = true;
    this.#ends.give(null);
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#ends.pause();
  }

  #resume(): void {
    if (!this.#isPaused || this.#isOver) return;
    this.#isPaused = false;
    this.#ends.resume();
  }
}
