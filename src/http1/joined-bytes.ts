const roomBytesMin = 1024;

/**
 * Joins bytes that arrive in pieces. Its memory doubles as it grows, so that each byte is copied a few times and not
 * once per piece: a head sent byte by byte must not cost the square of its length.
 */
export class JoinedBytes {
  #room: Buffer | null = null;

  /** `before` followed by `more`. `before` stays unchanged; this is cheapest if it is the result of the last call. */
  join(before: Buffer, more: Buffer): Buffer {
    const length = before.length + more.length;
    const room = this.#room;
    if (
      room !== null &&
      before.buffer === room.buffer &&
      before.byteOffset === room.byteOffset &&
      length <= room.length
    ) {
      more.copy(room, before.length);
      return room.subarray(0, length);
    }
    // Memory of its own: a view of a shared slab could be mistaken for it.
    const larger = Buffer.allocUnsafeSlow(Math.max(roomBytesMin, 2 * length));
    before.copy(larger, 0);
    more.copy(larger, before.length);
    this.#room = larger;
    return larger.subarray(0, length);
  }

  /** Releases the memory. Results of earlier calls stay valid. */
  forget(): void {
    this.#room = null;
  }
}
