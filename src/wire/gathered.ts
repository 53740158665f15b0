const roomBytesMin = 1 << 10;

/**
 * Bytes that came in pieces, one behind the other. The room for them doubles: a piece by itself holds far more than a
 * byte, and whoever sends a long message byte by byte would have all of that held.
 */
export class Gathered {
  #room = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Copies a piece: whose it is uses it again. */
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

  /** Answers what has come, and begins anew. */
  take(): Buffer {
    const all = this.#room.subarray(0, this.#length);
    this.#room = Buffer.alloc(0);
    this.#length = 0;
    return all;
  }
}
