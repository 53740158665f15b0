/**
 * Joins bytes that arrive in parts. The cost is linear in the number of bytes, however small the parts are: joining
 * the rest anew for each part would cost more.
 */
export class Gathered {
  #room: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** All bytes so far. Valid until the next `append`. */
  get bytes(): Buffer {
    return this.#room.subarray(this.#start, this.#end);
  }

  append(part: Buffer): void {
    if (part.length === 0) return;
    if (this.length === 0) {
      // Most input comes in one part, which is not copied.
      [this.#room, this.#start, this.#end] = [part, 0, part.length];
      return;
    }
    if (this.#end + part.length > this.#room.length) this.#grow(this.length + part.length);
    this.#room.set(part, this.#end);
    this.#end += part.length;
  }

  /** Takes out the first `count` bytes. The answered bytes stay unchanged. */
  take(count: number): Buffer {
    const taken = this.bytes.subarray(0, count);
    this.#start += taken.length;
    return taken;
  }

  /** Takes out all bytes. */
  takeAll(): Buffer {
    return this.take(this.length);
  }

  /** Makes twice the room that is needed, so that most parts fit. Bytes answered before keep their own memory. */
  #grow(length: number): void {
    const room = Buffer.allocUnsafe(2 * length);
    this.#room.copy(room, 0, this.#start, this.#end);
    [this.#room, this.#start, this.#end] = [room, 0, this.length];
  }
}
