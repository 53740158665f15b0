const roomBytesMin = 1 << 10;

/**
 * Bytes that came in pieces, joined. Its buffer doubles when full: a separate object for each piece would take far more
 * than a byte, and a sender of single bytes would have us hold all of those.
 */
export class Gathered {
  #room = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Copies a piece, because its owner reuses the buffer. */
  add(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#room.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(roomBytesMin, 2 * length));
      larger.set(this.#room.subarray(0, this.#length));
      this.#room = larger;
    }
    this.#room.set(piece, this.#length);
    this.#length = length;
  }

  /** Answers what has come, and starts over. */
  take(): Buffer {
    const all = this.#room.subarray(0, this.#length);
    this.#room = Buffer.alloc(0);
    this.#length = 0;
    return all;
  }
}
