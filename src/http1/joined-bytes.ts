const roomBytesMin = 1024;

/**
 * Joins bytes that arrive in pieces. The room for them doubles, so that each is copied a few times and not once for
 * each piece: whoever sends a head byte by byte must not cost the square of its length.
 */
export class JoinedBytes {
  #room: Buffer | null = null;

  /** `before` with `more` behind it. `before` stays as it is; it is best what the last call answered. */
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
    // Memory of its own: views of a shared slab could be taken for it.
    const larger = Buffer.allocUnsafeSlow(Math.max(roomBytesMin, 2 * length));
    before.copy(larger, 0);
    more.copy(larger, before.length);
    this.#room = larger;
    return larger.subarray(0, length);
  }

  /** Lets the room go. What was answered stays. */
  forget(): void {
    this.#room = null;
  }
}
